"""The rules of admission, with their arithmetic."""

import pytest

from rl.train import capacity
from schemas.training import TrainConfig


def config(mode: str, **others: object) -> TrainConfig:
    return TrainConfig.model_validate({"groups": 4, "steps": 9, "rollout": {"mode": mode, "ahead": 2}} | others)


def test_sync_begins_one_batch_and_no_more():
    sync = config("sync")
    assert capacity.may_begin(sync, version=0, begun=0, tasks=99) == 4
    assert capacity.may_begin(sync, version=0, begun=4, tasks=99) == 0
    assert capacity.may_begin(sync, version=1, begun=4, tasks=99) == 4


@pytest.mark.parametrize("mode", ["partial", "async"])
def test_others_begin_so_many_batches_ahead(mode):
    # (version 3 + 1 + 2 ahead) * 4 = 24 groups in all
    assert capacity.may_begin(config(mode), version=3, begun=20, tasks=99) == 4
    assert capacity.may_begin(config(mode), version=3, begun=24, tasks=99) == 0


def test_no_task_is_begun_beyond_the_epochs():
    twice = config("async", epochs=2)
    assert capacity.may_begin(twice, version=3, begun=20, tasks=11) == 2  # 2 * 11 - 20
    assert capacity.may_begin(twice, version=3, begun=22, tasks=11) == 0


def test_a_run_is_over_at_the_first_of_its_limits():
    both = config("async", minutes=2)
    assert not capacity.is_over(both, version=8, seconds=119)
    assert capacity.is_over(both, version=9, seconds=0)
    assert capacity.is_over(both, version=0, seconds=120)


def test_only_async_plays_while_it_trains():
    assert capacity.may_play("async", training=True, batch_ready=True)
    for mode in ("sync", "partial"):
        assert not capacity.may_play(mode, training=True, batch_ready=False)
        assert not capacity.may_play(mode, training=False, batch_ready=True)
        assert capacity.may_play(mode, training=False, batch_ready=False)


def test_only_sync_waits_for_what_is_played():
    whole = {"ready": 4, "groups": 4, "queued": 0}
    assert not capacity.may_train("sync", **whole, in_flight=1)
    assert capacity.may_train("sync", **whole, in_flight=0)
    assert capacity.may_train("partial", **whole, in_flight=9)
    assert capacity.may_train("async", **whole, in_flight=9)


def test_less_than_a_batch_is_trained_only_where_nothing_else_will_come():
    assert not capacity.may_train("async", ready=3, groups=4, in_flight=1, queued=0)
    assert not capacity.may_train("async", ready=3, groups=4, in_flight=0, queued=1)
    assert capacity.may_train("async", ready=3, groups=4, in_flight=0, queued=0)
    assert not capacity.may_train("async", ready=0, groups=4, in_flight=0, queued=0)


def test_every_epoch_goes_through_all_tasks_once_in_an_order_of_its_own():
    places = [capacity.place_of(number, 7, seed=3) for number in range(21)]
    epochs = [[at for epoch, at in places if epoch == wanted] for wanted in range(3)]
    assert all(sorted(order) == list(range(7)) for order in epochs)
    assert len({tuple(order) for order in epochs}) == 3


def test_members_of_a_group_draw_from_seeds_of_their_own():
    seeds = {capacity.attempt_seed(0, group, member) for group in range(50) for member in range(16)}
    assert len(seeds) == 800
    assert capacity.attempt_seed(0, 1, 2) == capacity.attempt_seed(0, 1, 2) != capacity.attempt_seed(1, 1, 2)
