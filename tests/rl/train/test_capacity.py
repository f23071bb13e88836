"""The rules of admission, with their arithmetic."""

import pytest

from rl.train import capacity


def test_sync_begins_one_batch_and_no_more():
    begin = {"groups": 4, "ahead": 2}
    assert capacity.may_begin("sync", version=0, begun=0, **begin) == 4
    assert capacity.may_begin("sync", version=0, begun=4, **begin) == 0
    assert capacity.may_begin("sync", version=1, begun=4, **begin) == 4


@pytest.mark.parametrize("mode", ["partial", "async"])
def test_others_begin_so_many_batches_ahead(mode):
    # (version 3 + 1 + 2 ahead) * 4 = 24 groups in all
    assert capacity.may_begin(mode, version=3, begun=20, groups=4, ahead=2) == 4
    assert capacity.may_begin(mode, version=3, begun=24, groups=4, ahead=2) == 0


def test_only_async_plays_while_it_trains():
    assert capacity.may_play("async", training=True, batch_ready=True)
    for mode in ("sync", "partial"):
        assert not capacity.may_play(mode, training=True, batch_ready=False)
        assert not capacity.may_play(mode, training=False, batch_ready=True)
        assert capacity.may_play(mode, training=False, batch_ready=False)


def test_only_sync_waits_for_what_is_played():
    assert not capacity.may_train("sync", batch_ready=True, in_flight=1)
    assert capacity.may_train("sync", batch_ready=True, in_flight=0)
    assert capacity.may_train("partial", batch_ready=True, in_flight=9)
    assert not capacity.may_train("async", batch_ready=False, in_flight=0)


def test_every_epoch_goes_through_all_tasks_once_in_an_order_of_its_own():
    places = [capacity.place_of(number, 7, seed=3) for number in range(21)]
    epochs = [[at for epoch, at in places if epoch == wanted] for wanted in range(3)]
    assert all(sorted(order) == list(range(7)) for order in epochs)
    assert len({tuple(order) for order in epochs}) == 3


def test_members_of_a_group_draw_from_seeds_of_their_own():
    seeds = {capacity.attempt_seed(0, group, member) for group in range(50) for member in range(16)}
    assert len(seeds) == 800
    assert capacity.attempt_seed(0, 1, 2) == capacity.attempt_seed(0, 1, 2) != capacity.attempt_seed(1, 1, 2)
