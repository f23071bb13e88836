import asyncio
from collections import Counter

import pytest

from pipeline.filters.base import Resources
from pipeline.filters.closed_book import closed_book
from pipeline.passn import Measured, pass_at_n
from pipeline.sampling import Sampler, attempt_seeds
from pipeline.sequential import Band, characteristic
from pipeline.solver import SolverDown
from schemas.answer import DateAnswer
from schemas.certificate import Outcome
from schemas.config import KeepBand, SequentialTest
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory
from tests.pipeline.tasks import (
    AmbiguousDateSolver,
    BernoulliSolver,
    CopySolver,
    CountingSolver,
    CrashingSolver,
    EchoSolver,
    HangingSolver,
    TruncatedSolver,
    math_task,
)

BAND = KeepBand(n=8, low=1, high=7)


def tasks(n: int) -> list[Task]:
    return [math_task(f"What is the remainder of {6 * i + 5} divided by 6?", index=i) for i in range(n)]


async def measured(
    solver: CountingSolver, n: int = 40, *, band: KeepBand = BAND, concurrency: int = 16
) -> list[Measured]:
    return await pass_at_n(tasks(n), solver, band, run_seed=3, concurrency=concurrency)


async def test_keeps_what_is_solved_sometimes_and_names_the_side_of_the_rest() -> None:
    assert {m.certificate.reason for m in await measured(BernoulliSolver(0.0))} == {"too_hard"}
    assert {m.certificate.reason for m in await measured(BernoulliSolver(1.0))} == {"too_easy"}
    kept = [m for m in await measured(BernoulliSolver(0.5)) if m.certificate.outcome is Outcome.KEEP]
    assert len(kept) >= 38, "both in 8 fair draws, 1 - 2/2^8 = .992 each"
    assert all(0 < m.difficulty.correct < m.difficulty.n for m in kept)


async def test_counts_seeds_and_attempts_do_not_depend_on_concurrency_or_timing() -> None:
    one, many = (
        await measured(BernoulliSolver(0.3), concurrency=1),
        await measured(BernoulliSolver(0.3), concurrency=64),
    )
    assert one == many


async def test_verdict_is_that_of_all_eight_samples() -> None:
    solver = BernoulliSolver(0.15)
    for m in await measured(solver, 60):
        seeds = attempt_seeds(3, m.task.task_id, "tools")
        right = 0
        for _ in range(8):
            trajectory = await solver.answer(m.task, next(seeds))
            right += trajectory.answer == "5"
        assert (m.certificate.outcome is Outcome.KEEP) == (1 <= right <= 7)


async def test_draws_as_many_samples_as_the_rule_needs_on_average() -> None:
    """400 tasks at p = .5: 3.5 a task; sd of one is under 2.1, so the mean lies within .32 at 3 sigma."""
    solver = BernoulliSolver(0.5)
    await measured(solver, 400, concurrency=128)
    expected = characteristic(Band(BAND), 0.5)[1]
    assert sum(solver.asked.values()) / 400 == pytest.approx(expected, abs=0.32)


async def test_engine_is_full_until_the_tail_and_never_above_its_slots() -> None:
    solver = BernoulliSolver(0.0)
    await measured(solver, 40, concurrency=16)
    assert solver.most_running == 16


async def test_every_sample_has_a_seed_of_its_own_and_it_is_stored() -> None:
    for m in await measured(BernoulliSolver(0.2)):
        assert len(set(m.difficulty.seeds)) == m.difficulty.n == len(m.trajectories)
        assert m.difficulty.seeds == tuple(t.seed for t in m.trajectories)
        assert m.certificate.detail["difficulty"]["seeds"] == list(m.difficulty.seeds)  # type: ignore[index, call-overload]


def test_seeds_differ_by_task_arm_and_run() -> None:
    def first(run: int, task: str, arm: str) -> list[int]:
        seeds = attempt_seeds(run, task, arm)
        return [next(seeds) for _ in range(64)]

    lists = [first(0, "a", "tools"), first(1, "a", "tools"), first(0, "b", "tools"), first(0, "a", "closed_book")]
    assert len({seed for seeds in lists for seed in seeds}) == 4 * 64
    assert first(0, "a", "tools") == lists[0]


async def test_truncated_samples_count_as_wrong_and_are_told_apart() -> None:
    for m in await measured(TruncatedSolver(), 3):
        assert (m.difficulty.n, m.difficulty.correct, m.difficulty.truncated) == (8, 0, 8)
        assert m.certificate.reason == "too_hard"


async def test_tokens_and_calls_of_every_attempt_are_on_the_certificate() -> None:
    for m in await measured(BernoulliSolver(0.3), 10):
        assert m.certificate.cost == 12 * len(m.trajectories)
        assert m.certificate.calls == tuple(f"{m.task.task_id}/{seed}" for seed in m.difficulty.seeds)


async def test_a_task_whose_attempts_break_fails_and_the_others_do_not() -> None:
    broken = tasks(40)[7].task_id
    results = await measured(CrashingSolver(0.5, {broken}))
    failed = [m for m in results if m.certificate.outcome is Outcome.FAILED]
    assert [m.task.task_id for m in failed] == [broken]
    assert failed[0].certificate.reason == "infra: ConnectionResetError: peer went away"
    assert failed[0].difficulty.n == 0, "a broken attempt is nobody's failure"
    assert len(results) == 40


async def test_an_attempt_that_breaks_once_changes_nothing() -> None:
    broken = {task.task_id for task in tasks(40)[::2]}
    assert await measured(CrashingSolver(0.4, broken, once=True)) == await measured(BernoulliSolver(0.4))


class LockedSolver:
    """A server that will refuse every call."""

    name, arm = "locked@1", "tools"

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        self.asked += 1
        raise SolverDown("locked@1: refuses the API key")


async def test_a_solver_that_says_it_is_down_is_asked_no_more() -> None:
    """At 4 slots the first wave's calls may be out; no attempt is repeated."""
    solver = LockedSolver()
    with pytest.raises(SolverDown, match="refuses the API key"):
        await pass_at_n(tasks(40), solver, BAND, run_seed=3, concurrency=4)
    assert solver.asked <= 4


async def test_a_dead_server_ends_the_stage_instead_of_failing_every_task() -> None:
    solver = CrashingSolver(0.5, {task.task_id for task in tasks(400)})
    with pytest.raises(SolverDown, match=r"test@1: 32 attempts in a row broke, .* peer went away"):
        await measured(solver, 400)
    assert sum(solver.asked.values()) < 32 + 16


async def test_a_hanging_attempt_ends_at_its_deadline() -> None:
    sampler = Sampler(HangingSolver(), 0, 8, deadline=0.02, repeats=1, spare=1)
    certificate = await closed_book(tasks(1)[0], sampler, SequentialTest())
    assert certificate.outcome is Outcome.FAILED
    assert certificate.reason == "infra: no attempt within 0.02 s"


async def test_ungradable_answers_are_outside_n_and_a_task_full_of_them_is_undecided() -> None:
    task = math_task("On which date was it?", DateAnswer(value="1987-03-04"))
    [m] = await pass_at_n([task], AmbiguousDateSolver(), BAND, run_seed=0, concurrency=4)
    assert m.certificate.outcome is Outcome.UNDECIDED
    assert m.difficulty.n == 0
    assert m.certificate.reason == "ungradable: day_or_month_first"
    assert m.difficulty.undecided == len(m.trajectories) > 4


async def test_a_cut_off_run_continues_with_the_same_attempts() -> None:
    """What a journal has is not asked again: the second run's (task, seed) pairs include all of the first's."""
    first, second = BernoulliSolver(0.2), BernoulliSolver(0.2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await measured(first, 200, concurrency=4)
    whole = await measured(second, 200, concurrency=4)
    assert 0 < len(first.asked) < len(second.asked)
    assert first.asked.keys() <= second.asked.keys()
    assert first.running == 0, "cancelled attempts do not linger"
    assert Counter(m.certificate.outcome for m in whole).total() == 200


# Samples that are not samples: copies of one


async def test_copies_that_chance_does_not_make_are_a_broken_sampler() -> None:
    """Two tokens at log p = -1 in each of 7 more attempts: e^-14 = 8e-7. Eight copies are not "hard"."""
    for m in await measured(CopySolver(-1.0), 3):
        assert m.certificate.outcome is Outcome.FAILED
        assert m.certificate.reason == "identical_samples"


async def test_a_confident_model_may_repeat_itself() -> None:
    """At log p = -.01 a token, eight equal answers have probability e^-.14 = .87."""
    for m in await measured(CopySolver(-0.01), 30):
        assert m.certificate.reason == "too_hard"


async def test_without_log_probabilities_nothing_but_copies_on_eight_tasks_is_a_broken_sampler() -> None:
    assert {m.certificate.reason for m in await measured(CopySolver(None), 7)} == {"too_hard"}
    assert {m.certificate.reason for m in await measured(CopySolver(None), 8)} == {"identical_samples"}


async def test_closed_book_failures_that_are_copies_prove_nothing() -> None:
    certificate = await closed_book(tasks(1)[0], Sampler(CopySolver(-1.0), 0, 8), SequentialTest())
    assert (certificate.outcome, certificate.reason) == (Outcome.FAILED, "identical_samples")


# Tasks that the solver knows it cannot do


class LimitedSolver(BernoulliSolver):
    def out_of_reach(self, task: Task) -> str | None:
        return "17 is not in the vocabulary" if "17" in task.question else None


async def test_out_of_reach_tasks_cost_nothing_and_are_recorded_as_too_hard() -> None:
    solver = LimitedSolver(0.5)
    results = await measured(solver, 10)
    assert results[2].certificate.reason == "too_hard_for_solver"
    assert results[2].certificate.detail["why"] == "17 is not in the vocabulary"
    assert results[2].difficulty.n == 0
    assert results[2].task.task_id not in {task for task, _ in solver.asked}


# The closed-book test


async def closed(solver: CountingSolver) -> list[Outcome]:
    sampler = Sampler(solver, 0, 32)
    return [(await closed_book(task, sampler, SequentialTest())).outcome for task in tasks(20)]


async def test_closed_book_keeps_the_unknown_after_ten_failures_and_rejects_the_known_after_two() -> None:
    never, always = EchoSolver(), BernoulliSolver(1.0)
    assert set(await closed(never)) == {Outcome.KEEP}
    assert sum(never.asked.values()) == 20 * 10
    assert set(await closed(always)) == {Outcome.REJECT}
    assert sum(always.asked.values()) == 20 * 2


async def test_closed_book_certificate_carries_what_its_verdict_rests_on() -> None:
    certificate = await closed_book(tasks(1)[0], Sampler(EchoSolver(), 0, 8), SequentialTest())
    assert certificate.n == 10
    assert certificate.detail["log_ratio"] == pytest.approx(-3.054, abs=1e-3)
    assert certificate.detail["difficulty"]["arm"] == "tools"  # type: ignore[index, call-overload]
    assert len(certificate.calls) == 10
    assert certificate.cost == 120


def test_stop_reasons_are_all_sorted() -> None:
    """A new stop reason must be put somewhere: nobody's failure, truncated, or the solver's."""
    from pipeline.sampling import NOBODYS_FAILURE, TRUNCATED

    own = {StopReason.ANSWERED, StopReason.NO_ANSWER, StopReason.MAX_TURNS, StopReason.FORMAT, StopReason.LOOP}
    assert NOBODYS_FAILURE | TRUNCATED | own == set(StopReason)
    assert Resources().triviality == SequentialTest()
