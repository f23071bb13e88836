"""How attempts ended: each is counted once, and the ones to look at are the first and the last of their kind."""

from rl.analytics import Ended, failure_stats, samples
from rl.learn.records import Graded, Verdict
from schemas.measured import Failure
from schemas.trajectory import StopReason, Trajectory, Turn
from tests.pipeline.tasks import math_task, search_task

SEARCH, MATH = search_task(), math_task()


def ended(number, verdict=Verdict.NONE, stop=StopReason.ANSWERED, versions=("0",), task=SEARCH, tokens=0):
    turns = tuple(Turn(prompt_tokens=1, text="t", version=version, call_id="c") for version in versions)
    done = Trajectory(task_id=task.task_id, solver="s", arm="tools", seed=number, turns=turns, stop=stop, tokens=tokens)
    return Ended(task, Graded(uid=f"{number}/0", trajectory=done, verdict=verdict))


def test_every_attempt_is_counted_in_one_row():
    attempts = [
        ended(1, Verdict.RIGHT, versions=("0", "9"), tokens=10),
        ended(2, Verdict.RIGHT, versions=("9",), tokens=20),
        ended(3, Verdict.WRONG, versions=("10",)),
        ended(4, stop=StopReason.FORMAT, versions=("9",)),
        ended(5, stop=StopReason.INFRA, versions=()),
        ended(6, Verdict.UNDECIDED, task=MATH),
    ]
    rows = failure_stats(attempts)
    assert sum(row.n for row in rows) == len(attempts)
    assert [(r.version, r.outcome, r.n) for r in rows if r.stratum == SEARCH.stratum] == [
        ("", "infra", 1),
        ("9", "format", 1),
        ("9", "right", 2),
        ("10", "wrong", 1),
    ]
    assert rows[2] == Failure(  # (2 + 1) / 2 turns, (10 + 20) / 2 tokens
        stratum=SEARCH.stratum, version="9", outcome="right", n=2, turns=1.5, tokens=15.0
    )


def test_samples_are_the_first_and_the_last_of_each_kind():
    attempts = [
        ended(1, Verdict.WRONG),
        ended(2, Verdict.RIGHT),
        ended(3, Verdict.RIGHT),
        ended(4, Verdict.RIGHT),
        ended(5, stop=StopReason.LOOP),
        ended(6, Verdict.UNDECIDED),
    ]
    found = [(s.kind, s.when, s.ended.graded.trajectory.seed) for s in samples(iter(attempts))]
    assert found == [
        ("right", "early", 2),
        ("right", "late", 4),
        ("wrong", "early", 1),
        ("no answer", "early", 5),
        ("no answer", "late", 6),
    ]
