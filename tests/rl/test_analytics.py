"""How attempts ended: each is counted once, and the ones to look at are of the first and of the last."""

from rl.analytics import failure_stats, samples
from rl.learn.records import Verdict
from rl.train.buffer import Ended
from schemas.measured import Failure
from schemas.trajectory import StopReason, Trajectory
from tests.pipeline.tasks import search_task

TASK = search_task()
STRATA = {"a": "s/1", "b": "s/2"}


def ended(task_id, verdict, stop="answered", *, turns=1, tokens=0, version="0"):
    return Ended(task_id=task_id, verdict=verdict, stop=stop, turns=turns, tokens=tokens, version=version, spent=0.0)


def test_every_attempt_is_counted_in_one_row():
    attempts = [
        ended("a", "right", turns=2, tokens=10, version="9"),
        ended("a", "right", turns=1, tokens=20, version="9"),
        ended("a", "wrong", version="10"),
        ended("a", "none", "format", version="9"),
        ended("a", "none", "infra", turns=0, version=""),
        ended("b", "undecided"),
    ]
    rows = failure_stats(attempts, STRATA)
    assert sum(row.n for row in rows) == len(attempts)
    assert [(row.stratum, row.version, row.outcome, row.n) for row in rows] == [
        ("s/1", "", "infra", 1),
        ("s/1", "9", "format", 1),
        ("s/1", "9", "right", 2),
        ("s/1", "10", "wrong", 1),
        ("s/2", "0", "undecided", 1),
    ]
    assert rows[2] == Failure(  # (2 + 1) / 2 turns, (10 + 20) / 2 tokens
        stratum="s/1", version="9", outcome="right", n=2, turns=1.5, tokens=15.0
    )


def attempt(number):
    return Trajectory(task_id=TASK.task_id, solver="s", arm="tools", seed=number, turns=(), stop=StopReason.NO_ANSWER)


def test_samples_are_the_first_of_each_kind_early_and_late_and_no_more_is_looked_at():
    kinds = [Verdict.WRONG, Verdict.UNDECIDED, Verdict.RIGHT, Verdict.WRONG, Verdict.NONE, Verdict.RIGHT]
    seen = []

    def verdict(each):
        seen.append(each.seed)
        return kinds[each.seed]

    attempts = [attempt(number) for number in range(6)]
    found = samples(attempts, reversed(attempts), {TASK.task_id: TASK}, verdict)
    assert [(each.kind.value, each.when, each.trajectory.seed) for each in found] == [
        ("right", "early", 2),
        ("right", "late", 5),
        ("wrong", "early", 0),
        ("wrong", "late", 3),
        ("none", "early", 4),
        ("none", "late", 4),
    ]
    assert seen == [0, 1, 2, 3, 4, 5, 4, 3]
