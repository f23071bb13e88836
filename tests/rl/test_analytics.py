"""How attempts ended: each is counted once, and the ones to look at are of the first and of the last."""

from rl.analytics import ADVICE, advice, failure_stats, samples
from rl.learn.records import Verdict
from rl.train.buffer import Ended
from schemas.measured import CONTENT, AttemptOutcome, Diagnosis
from schemas.trajectory import StopReason, Trajectory
from tests.pipeline.tasks import search_task

TASK = search_task()
STRATA = {"a": "s/1", "b": "s/2"}


def ended(task_id, outcome, *, epoch=0, turns=1, tokens=0, version="0", spent=0.0, **signs):
    diagnosis = Diagnosis(outcome=outcome, **signs)
    return Ended(
        task_id=task_id, epoch=epoch, turns=turns, tokens=tokens, version=version, diagnosis=diagnosis, spent=spent
    )


def test_every_attempt_is_counted_in_one_row():
    attempts = [
        ended("a", "right", turns=2, tokens=10, version="9"),
        ended("a", "right", turns=1, tokens=20, version="9"),
        ended("a", "gave_up", version="10"),
        ended("a", "format", version="9"),
        ended("a", "infra", turns=0, version=""),
        ended("b", "unsure"),
    ]
    rows = failure_stats(attempts, STRATA)
    assert sum(row.n for row in rows) == len(attempts)
    assert [(row.stratum, row.version, row.outcome, row.n) for row in rows] == [
        ("s/1", "", "infra", 1),
        ("s/1", "9", "format", 1),
        ("s/1", "9", "right", 2),
        ("s/1", "10", "gave_up", 1),
        ("s/2", "0", "unsure", 1),
    ]
    assert (rows[2].turns, rows[2].tokens) == (1.5, 15.0)  # (2 + 1) / 2 and (10 + 20) / 2


def test_passes_over_the_tasks_are_counted_apart():
    attempts = [ended("a", "right", epoch=epoch, version="3") for epoch in (0, 1, 1)]
    rows = failure_stats(attempts, STRATA)
    assert [(row.epoch, row.n, row.pass_a) for row in rows] == [
        (0, 1, 1.5),
        (1, 2, 2.5),
    ]  # Beta(.5, .5) and 1 or 2 right


def test_an_attempt_has_read_its_evidence_where_a_tool_showed_every_page():
    signs = [{"pages": 2}, {"pages": 2, "unread": ("x",)}, {"pages": 0}]
    (row,) = failure_stats([ended("a", "gave_up", **each) for each in signs], STRATA)
    assert (row.n, row.read) == (3, 1)


def test_what_shows_why_is_a_mean_over_the_attempts_that_have_it():
    lost = {"clues": 4, "pages": 2, "unread": ("x",), "uncalled": ("open",)}
    attempts = [
        ended("a", "near_miss", spent=1.0, **lost, clues_met=3, failed_at=2, calls={"search": 1}),
        ended("a", "near_miss", spent=4.0, clues=4, pages=2, calls={"search": 2, "open": 4}),
    ]
    (row,) = failure_stats(attempts, STRATA)
    assert (row.seconds, row.failed_at, row.clues_met, row.unread) == (2.5, 2.0, 0.75, 0.25)
    assert (row.calls, row.uncalled) == ({"open": 2.0, "search": 1.5}, {"open": 0.5})


def test_only_what_was_asked_says_how_hard_it_is():
    kinds = ["right", "right", "wrong_value", "format", "infra", "unsure", "tool_error", "overflow"]
    rows = failure_stats([ended("a", kind) for kind in kinds], STRATA)
    assert {(row.pass_a, row.pass_b) for row in rows} == {(2.5, 1.5)}  # 2 right and 1 wrong on Beta(.5, .5)
    assert list(advice(rows).values()) == [1, 1, 1, 1, 1]
    assert set(ADVICE) == set(AttemptOutcome) - CONTENT - {AttemptOutcome.RIGHT}


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
