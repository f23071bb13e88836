"""From groups of attempts to what one step trains on."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl.learn.batch import BatchError, make_batch
from rl.learn.records import Batch, Graded, Verdict
from schemas.training import TrainConfig
from schemas.trajectory import StopReason
from tests.rl.learn.made import attempt, config, ended, group, turns_of


def made(*groups: list[Graded], version: int = 0, seed: int = 0, **given: object) -> Batch:
    return make_batch(groups, config(**given), version, seed)


def reasons(batch: Batch) -> Counter[str]:
    return Counter(batch.dropped.values())


@pytest.mark.parametrize(
    ("worths", "reasons_"),
    [
        ([1, 1, 1, 1], {"no_signal": 4}),
        ([0, 0, 0, 0], {"no_signal": 4}),
        ([-1, -1, -1, -1], {"no_signal": 4}),
        ([1, None, None, None], {"alone": 1, "tool_down": 3}),
        ([None] * 4, {"tool_down": 4}),
        ([1], {"alone": 1}),
        ([-1], {"alone": 1}),
        ([], {}),
    ],
)
def test_a_group_without_signal_is_skipped_and_counted(worths: list[int | None], reasons_: dict[str, int]) -> None:
    for turns in (1, 3):
        batch = made(group("t", worths, turns))
        assert (batch.rows, batch.trained, dict(reasons(batch))) == ((), (), reasons_)
        assert all(np.isfinite(value) for value in batch.metrics.values())


def test_advantages_shares_and_order_of_a_batch_by_hand() -> None:
    """b: 0, 1, 1/2 by the rewards 1, 0 and the dead member left out; 2 tokens each, so a token's share is 1/4."""
    batch = made(group("t", [1, 0, None]))
    assert batch.trained == ("t/0", "t/1") and batch.dropped == {"t/2": "tool_down"}
    assert [set(row.advantages[row.targets].tolist()) for row in batch.rows] == [{1.0}, {-1.0}]
    assert [row.share for row in batch.rows] == [0.25, 0.25]
    assert batch.metrics["reward/valid"] == 0.5


def test_undecided_attempts_leave_the_group() -> None:
    undecided = ended("t/2", turns_of([(3, 2)]), StopReason.ANSWERED, Verdict.UNDECIDED)
    batch = made([*group("t", [1, 0]), undecided])
    assert batch.dropped == {"t/2": "undecided"}
    assert batch.rows[0].advantages[-1] == 1.0


def test_every_target_counts_alike_per_token() -> None:
    """4 valid tokens in one trajectory and 6 in the other: the shares of all targets are 1/10 and sum to 1."""
    batch = made([attempt("t/0", 1, turns=2, tokens=2), attempt("t/1", 0, turns=3, tokens=2)])
    assert [row.share for row in batch.rows] == [0.1, 0.1]
    assert sum(row.share * row.targets.sum() for row in batch.rows) == pytest.approx(1.0)


def test_tokens_that_are_left_out_are_in_no_denominator() -> None:
    """4 valid tokens, 6 of a trajectory that left the group: a share is 1/4, not 1/10."""
    gone = ended("t/2", turns_of([(3, 6)]), StopReason.TOOL_DOWN)
    batch = made([attempt("t/0", 1), attempt("t/1", 0), gone])
    assert [row.share for row in batch.rows] == [0.25, 0.25]


def test_every_trajectory_counts_alike_per_trajectory_also_when_its_rows_fork() -> None:
    """Two rows of 2 and 1 targets share 1/2, three targets 1/6 each; the other has 5 targets of 1/10."""
    forked = ended("t/0", turns_of([(3, 2), (4, 1)], segments=[0, 1]), StopReason.ANSWERED, Verdict.RIGHT)
    batch = made([forked, attempt("t/1", 0, tokens=5)], loss={"per": "trajectory"})
    assert [row.uid for row in batch.rows] == ["t/0", "t/0", "t/1"]
    assert [row.share for row in batch.rows] == pytest.approx([1 / 6, 1 / 6, 1 / 10])
    assert batch.metrics["rows/trained"] == 3 and batch.metrics["forked/trained"] == 0.5


def test_what_is_older_than_the_bound_goes_and_still_counts_in_the_baseline_of_others() -> None:
    """Rewards 1, 0, 0 of versions 5, 5, 1 at version 5, k = 3: b of the first is (0 + 0) / 2, of the second (1 + 0) / 2."""
    members = [attempt(f"t/{i}", worth, version=v) for i, (worth, v) in enumerate([(1, 5), (0, 5), (0, 1)])]
    batch = made(members, version=5, on_policy={"level": "bounded", "staleness": 3})
    assert batch.dropped == {"t/2": "stale"}
    assert [row.advantages[-1] for row in batch.rows] == [1.0, -0.5]
    assert made(members, version=5, on_policy={"level": "bounded"}).dropped == {}  # 1 >= 5 - 4


def test_the_oldest_turn_decides_what_is_stale() -> None:
    mixed = ended("t/0", turns_of([(3, 2), (1, 2)], versions=[1, 5]), StopReason.ANSWERED, Verdict.RIGHT)
    batch = made([mixed, attempt("t/1", 0, version=5)], version=5, on_policy={"staleness": 3})
    assert batch.dropped == {"t/0": "stale"} and batch.trained == ("t/1",)


TURN: dict[str, object] = {"level": "turn", "mask_older": True}


def test_masked_older_turns_are_context_and_share_nothing() -> None:
    """Versions 4 then 5 at version 5: of 2 + 2 tokens the last two are targets, with 2 more of the other member."""
    mixed = ended("t/0", turns_of([(3, 2), (1, 2)], versions=[4, 5]), StopReason.ANSWERED, Verdict.RIGHT)
    batch = made([mixed, attempt("t/1", 0, version=5)], version=5, on_policy=TURN)
    assert np.flatnonzero(batch.rows[0].targets).tolist() == [6, 7]
    assert [row.share for row in batch.rows] == [0.25, 0.25]


def test_a_trajectory_of_older_turns_alone_is_dropped_where_they_are_masked() -> None:
    members = [attempt("t/0", 1, version=4), attempt("t/1", 0, version=5)]
    assert made(members, version=5, on_policy=TURN).dropped == {"t/0": "older"}
    assert made(members, version=5, on_policy={"level": "turn"}).dropped == {}


@pytest.mark.parametrize(("level", "version"), [("batch", 5), ("batch", 3), ("turn", 3), ("bounded", 3)])
def test_weights_that_the_level_never_lets_be_trained_are_an_error(level: str, version: int) -> None:
    members = [attempt("t/0", 1, version=4), attempt("t/1", 0, version=4)]
    with pytest.raises(BatchError, match="sampled by version 4"):
        made(members, version=version, on_policy={"level": level}, rollout={"mode": "sync"})


def test_an_attempt_that_comes_twice_is_an_error() -> None:
    with pytest.raises(BatchError, match="twice"):
        made([attempt("t/0", 1), attempt("t/0", 0)])


def test_failures_are_capped_after_baselines_and_what_is_kept_keeps_its_advantage() -> None:
    """Rewards 1, 0, 0, 0 of 2 tokens: A is 1 and three times -1/3, mass +2 and -2/3 each. At cap 0.7 one of three goes."""
    batch = made(group("t", [1, 0, 0, 0]), negatives={"cap": 0.7})
    assert dict(reasons(batch)) == {"negative_cap": 1} and batch.trained[0] == "t/0"
    assert [row.advantages[-1] for row in batch.rows] == pytest.approx([1, -1 / 3, -1 / 3])
    assert batch.metrics["negative_kept/negative"] == pytest.approx(2 / 3)


def test_a_cap_of_nothing_trains_on_what_did_better_alone() -> None:
    batch = made(group("t", [1, 0, -1]), negatives={"cap": 0})
    assert batch.trained == ("t/0",) and batch.metrics["negative_kept/negative"] == 0


def test_the_weight_of_failures_scales_negative_advantages_alone() -> None:
    batch = made(group("t", [1, 0]), negatives={"cap": None, "weight": 0.5})
    assert [row.advantages[-1] for row in batch.rows] == [1.0, -0.5]


def test_metrics_name_their_population() -> None:
    """Group t: right after 1 turn, wrong after 3, a broken format after 1, tools down. Group u: both right after 2 turns."""
    members = [attempt("t/0", 1), attempt("t/1", 0, turns=3), attempt("t/2", -1), *group("t", [None] * 4)[3:]]
    found = made(members, group("u", [1, 1], 2), group("v", [1]), version=2, reward={"format": -0.5}).metrics
    assert found["reward/valid"] == pytest.approx((1 + 0 - 0.5 + 1 + 1 + 1) / 6)
    assert found["pass_rate/valid"] == pytest.approx(4 / 6)
    assert found["turns/valid"] == pytest.approx((1 + 3 + 1 + 2 + 2 + 1) / 6)
    assert found["turns/right"] == pytest.approx((1 + 2 + 2 + 1) / 4)
    assert found["turns/trained"] == pytest.approx(5 / 3)
    assert found["format_errors/valid"] == pytest.approx(1 / 6)
    assert found["solved/groups"] == 1.0  # A group of one is none.
    assert found["no_signal/groups"] == 0.5
    assert (found["lag_mean/trained"], found["lag_max/trained"]) == (2, 2)
    assert (found["tokens/trained"], found["tokens/shown"]) == (10, 15)


MEMBER = st.tuples(
    st.sampled_from([StopReason.ANSWERED, StopReason.ANSWERED, StopReason.ANSWERED, *StopReason]),
    st.sampled_from(Verdict),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 6), st.booleans()), max_size=4),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[Graded]], TrainConfig]:
    groups = []
    for g, members in enumerate(draw(st.lists(st.lists(MEMBER, max_size=5), max_size=4))):
        groups.append([])
        for i, (stop, verdict, turns) in enumerate(members):
            segments = [sum(fork for *_, fork in turns[: k + 1]) for k in range(len(turns))]
            made = turns_of([(s, o) for s, o, _, _ in turns], sorted(v for _, _, v, _ in turns), segments)
            groups[-1].append(ended(f"{g}/{i}", made, stop, verdict))
    on_policy = draw(st.sampled_from([{"staleness": 2}, {"level": "turn"}, TURN]))
    cap, per = draw(st.sampled_from([None, 0.0, 0.5, 1.0])), draw(st.sampled_from(["token", "trajectory"]))
    return groups, config(on_policy=on_policy, negatives={"cap": cap}, loss={"per": per})


@settings(deadline=None)
@given(runs(), st.integers(0, 3))
def test_every_attempt_ends_exactly_once_and_only_sampled_tokens_are_targets(
    run: tuple[list[list[Graded]], TrainConfig], seed: int
) -> None:
    groups, chosen = run
    batch = make_batch(groups, chosen, 6, seed)
    ends = [*batch.trained, *batch.dropped]
    assert sorted(ends) == sorted(graded.uid for members in groups for graded in members)
    assert {row.uid for row in batch.rows} == set(batch.trained)
    by_uid = {graded.uid: graded.trajectory for members in groups for graded in members}
    for row in batch.rows:
        sampled = {token: turn for turn in by_uid[row.uid].turns for token in turn.output_ids}
        for token, version in zip(row.ids[row.targets].tolist(), row.versions[row.targets].tolist(), strict=True):
            assert int(sampled[token].version) == version
            assert not (chosen.on_policy.mask_older and version != 6)
            assert chosen.on_policy.level != "bounded" or version >= 4
    assert not batch.rows or sum(row.share * row.targets.sum() for row in batch.rows) == pytest.approx(1)
    assert all(np.isfinite(value) for value in batch.metrics.values())
    again = make_batch(groups, chosen, 6, seed)
    assert (again.trained, again.dropped, again.metrics) == (batch.trained, batch.dropped, batch.metrics)
