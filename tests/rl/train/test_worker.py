"""Episodes in stints: what is put aside goes on as if it had never stopped, and what breaks is data."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.endpoint import EngineDied, ServerDown
from infra.place import Here, PartDied, Place, RayPlace
from pipeline.solver import SolverDown
from rl.learn.records import Verdict
from rl.train.parts import Order, Played
from rl.train.worker import RolloutWorker, WorkerSetup
from schemas.episode import ToolOptions
from schemas.measured import AttemptOutcome
from schemas.trajectory import StopReason
from tests.rl.test_env import ANSWER, BROKEN
from tests.rl.train.engines import OPEN, RaisingEngine, ScriptedEngine, WaitingEngine, order, setup_in


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> WorkerSetup:
    return setup_in(tmp_path_factory.mktemp("worker"))


def short(setup: WorkerSetup, **more: float) -> WorkerSetup:
    """Every stint is one turn."""
    return setup.model_copy(update={"stint_seconds": 1e-9, **more})


async def to_its_end(worker: RolloutWorker, first: Order) -> tuple[Played, list[Order]]:
    """Every stint from what the one before left, as a buffer keeps it."""
    stints: list[Order] = []
    played = await worker.play(first)
    while played.saved is not None:
        stints.append(played.saved)
        played = await worker.play(Order.model_validate_json(played.saved.model_dump_json()))
    return played, stints


@pytest.mark.parametrize(
    ("turns", "stop", "verdict", "outcome"),
    [
        ((ANSWER,), StopReason.ANSWERED, Verdict.RIGHT, AttemptOutcome.RIGHT),
        ((ANSWER.replace("Niger", "Mali"),), StopReason.ANSWERED, Verdict.WRONG, AttemptOutcome.WRONG_ENTITY),
        ((BROKEN,), StopReason.FORMAT, Verdict.NONE, AttemptOutcome.FORMAT),
    ],
)
async def test_an_attempt_that_is_over_is_graded_and_diagnosed(
    setup: WorkerSetup, turns: tuple[str], stop: StopReason, verdict: Verdict, outcome: AttemptOutcome
) -> None:
    worker = RolloutWorker(setup, [ScriptedEngine(turns)])
    played = await worker.play(order(3))
    await worker.close()
    assert played.saved is None and played.graded is not None
    graded = played.graded
    assert played.diagnosis is not None and played.diagnosis.outcome is outcome
    assert (graded.uid, graded.verdict, graded.trajectory.stop) == ("g/3", verdict, stop)
    assert (graded.trajectory.solver, graded.trajectory.arm, graded.trajectory.seed) == ("bytes@run", "tools", 3)
    assert {turn.version for turn in graded.trajectory.turns} == {"0"}


async def test_an_attempt_in_stints_is_the_attempt_in_one_go(setup: WorkerSetup) -> None:
    whole, cut = ScriptedEngine(), ScriptedEngine()
    in_one, in_stints = RolloutWorker(setup, [whole]), RolloutWorker(short(setup), [cut])
    lengths = []
    for n in range(24):
        once = await in_one.play(order(n))
        resumed, stints = await to_its_end(in_stints, order(n))
        assert once.graded == resumed.graded and once.graded is not None
        turns = once.graded.trajectory.turns
        assert [saved.turns for saved in stints] == [turns[: i + 1] for i in range(len(turns) - 1)]
        lengths.append(len(turns))
    assert whole.prompts == cut.prompts
    assert max(lengths) > 5 and len(set(lengths)) > 3
    await in_one.close()
    await in_stints.close()


async def test_spent_time_is_that_of_all_stints(setup: WorkerSetup) -> None:
    worker = RolloutWorker(short(setup), [ScriptedEngine((OPEN,))])
    played, stints = await to_its_end(worker, order())
    spent = [0.0, *(saved.spent for saved in stints), played.spent]
    assert spent == sorted(spent) and len(set(spent)) == len(spent) > 3
    await worker.close()


async def test_a_cut_saves_every_episode_at_its_next_turn(setup: WorkerSetup) -> None:
    engine = WaitingEngine((OPEN,))
    worker = RolloutWorker(setup, [engine])
    running = [asyncio.ensure_future(worker.play(order(n))) for n in range(100)]
    while len(engine.prompts) < 100:
        await asyncio.sleep(0.01)
    await worker.cut()
    engine.go.set()
    saved = [played.saved for played in await asyncio.gather(*running)]
    assert [len(it.turns) for it in saved if it is not None] == [1] * 100
    after = await worker.play(order(100))
    assert after.graded is not None and len(after.graded.trajectory.turns) > 1
    await worker.close()


async def test_the_time_of_all_stints_together_ends_an_attempt_with_its_turns(setup: WorkerSetup) -> None:
    worker = RolloutWorker(short(setup), [ScriptedEngine((OPEN,))])
    saved = (await worker.play(order())).saved
    await worker.close()
    assert saved is not None
    worker = RolloutWorker(setup, [WaitingEngine()])
    for spent in (setup.seconds - 0.2, setup.seconds + 5):
        graded = (await worker.play(saved.model_copy(update={"spent": spent}))).graded
        assert graded is not None and graded.verdict is Verdict.NONE
        assert (graded.trajectory.stop, graded.trajectory.turns) == (StopReason.TIME_BUDGET, saved.turns)
    await worker.close()


async def test_a_turn_that_cannot_be_sampled_is_data_and_a_dead_server_is_not(setup: WorkerSetup) -> None:
    worker = RolloutWorker(setup, [RaisingEngine(ServerDown("gone for now"))])
    graded = (await worker.play(order())).graded
    assert graded is not None and graded.verdict is Verdict.NONE
    assert (graded.trajectory.stop, graded.trajectory.error) == (StopReason.INFRA, "gone for now")
    await worker.close()
    for error, raised in (
        (EngineDied("died"), SolverDown),
        (SolverDown("for good"), SolverDown),
        (PartDied("engine-0", "killed"), PartDied),
    ):
        worker = RolloutWorker(setup, [RaisingEngine(error)])
        with pytest.raises(raised):
            await worker.play(order())
        await worker.close()


async def test_an_episode_keeps_to_one_engine_and_all_have_some(setup: WorkerSetup) -> None:
    engines = [ScriptedEngine((OPEN, ANSWER)) for _ in range(2)]
    worker = RolloutWorker(short(setup), engines)
    for n in range(12):
        before = [len(engine.prompts) for engine in engines]
        await to_its_end(worker, order(n))
        assert sum(len(e.prompts) > b for e, b in zip(engines, before, strict=True)) == 1
    assert all(engine.prompts for engine in engines)
    await worker.close()


@pytest.mark.parametrize(
    ("more", "asked", "why"),
    [
        ({"world": None}, order(), "the task has no world"),
        ({"world": "/no/such.jsonl"}, order(), "no such file"),
        ({"policy": Path("/no/policy")}, order(), "no/policy"),
        ({}, order(0, "search", "teleport"), r"tools \['teleport'\] of task"),
    ],
)
async def test_what_no_attempt_can_do_without_takes_the_solver_down(
    setup: WorkerSetup, more: dict[str, object], asked: Order, why: str
) -> None:
    worker = RolloutWorker(setup.model_copy(update=more), [ScriptedEngine()])
    with pytest.raises(SolverDown, match=why):
        await worker.play(asked)
    await worker.close()


def test_tools_in_this_process_and_servers_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="replicas=0: runs our tools in this process"):
        ToolOptions.model_validate({"replicas": 0, "servers": [{"name": "a", "urls": ["http://127.0.0.1:1/mcp"]}]})


@pytest.fixture(scope="module")
def ray_place() -> Iterator[Place]:
    place = RayPlace("local")
    yield place
    place.close()


@pytest.mark.slow
async def test_a_worker_with_engines_elsewhere_plays_what_one_here_plays(setup: WorkerSetup, ray_place: Place) -> None:
    graded = []
    for place in (Here(), ray_place):
        engines = [place.start(ScriptedEngine) for _ in range(2)]
        worker = place.start(RolloutWorker, setup, engines)
        played = await asyncio.gather(*(worker.play(order(n)) for n in range(16)))
        graded.append([it.graded for it in played])
        await worker.close()
    assert graded[0] == graded[1]
