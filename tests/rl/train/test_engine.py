"""What a turn is sampled by, whatever happens to its server: a stand-in here, vLLM in `test_engine_vllm.py`."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from infra.endpoint import ModelError
from infra.engine import EngineOptions
from infra.exchange import WrongWeights
from infra.models import LocalModel
from pipeline.solver import SolverDown
from rl.learn.records import Weights
from rl.train.engine import VllmEngine
from tests.rl.train import standin

Events = Callable[[], list[dict[str, Any]]]
TIMEOUT_S = 3.0


def published(version: int) -> Weights:
    return Weights(f"/nowhere/v{version}", version, "abc")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (folder := tmp_path / "notes").mkdir()
    return folder


@pytest.fixture
def events(notes: Path) -> Events:
    return lambda: [json.loads(line) for line in (notes / "events.jsonl").read_text().splitlines()]


@pytest_asyncio.fixture
async def engine(notes: Path, tmp_path: Path) -> AsyncIterator[VllmEngine]:
    def line(model: LocalModel, badge: str, port: int, options: EngineOptions) -> list[str]:
        return [sys.executable, standin.__file__, str(notes), str(model.path), model.name, badge, str(port)]

    model = LocalModel("tiny", Path("/nowhere/v0"), "r1")
    made = VllmEngine(
        model,
        cache=tmp_path,
        temperature=0.6,
        options=EngineOptions(start_timeout_s=30),
        timeout_s=TIMEOUT_S,
        command=line,
    )
    yield made
    await made.close()


def turn(engine: VllmEngine, ms: int = 0, seed: int = 0) -> Awaitable[Any]:
    return engine.sample([ms, 1], ends=[7], max_tokens=8, seed=seed)


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


async def test_a_turn_says_which_weights_it_is_by_and_its_cache_is_salted_with_them(
    engine: VllmEngine, events: Events
) -> None:
    first = await turn(engine, seed=5)
    await engine.swap(published(1))
    second = await turn(engine)
    assert (first.version, first.token_ids) == ("0", (0, 0))
    assert (second.version, second.token_ids) == ("1", (1, 1))
    turns = [event for event in events() if event["event"] == "turn"]
    assert [(t["salt"], t["temperature"]) for t in turns] == [("0", 0.6), ("1", 0.6)] and turns[0]["seed"] == 5


async def test_an_exchange_pauses_loads_and_proves_forgets_stamps_and_goes_on(
    engine: VllmEngine, events: Events
) -> None:
    await turn(engine)
    await engine.swap(published(1))
    asked = events()[2:]
    assert names(asked) == [
        "/pause?mode=wait",
        "/collective_rpc",
        "/reset_prefix_cache",
        "/update_weight_version",
        "/resume",
    ]
    assert (asked[1]["method"], asked[1]["args"]) == ("take_weights", ["/nowhere/v1", "abc"])
    assert asked[3]["new_version"] == "1"


async def test_turns_that_run_end_before_an_exchange_and_those_asked_for_meanwhile_wait(engine: VllmEngine) -> None:
    await turn(engine)
    running = [asyncio.ensure_future(turn(engine, ms=400)) for _ in range(8)]
    await asyncio.sleep(0.2)
    swapping = asyncio.ensure_future(engine.swap(published(1)))
    await asyncio.sleep(0.05)
    later = [asyncio.ensure_future(turn(engine)) for _ in range(8)]
    await asyncio.sleep(0.05)
    assert not swapping.done() and not any(asked.done() for asked in later)
    await swapping
    assert {(said.version, said.token_ids) for said in await asyncio.gather(*running)} == {("0", (0, 0))}
    assert {(said.version, said.token_ids) for said in await asyncio.gather(*later)} == {("1", (1, 1))}


async def test_no_turn_mixes_versions_however_swaps_fall(engine: VllmEngine) -> None:
    async def play(seed: int) -> list[Any]:
        return [await turn(engine, ms=(seed * 7 + i) % 20) for i in range(10)]

    players = asyncio.gather(*(play(seed) for seed in range(12)))
    for version in range(1, 6):
        await asyncio.sleep(0.03)
        await engine.swap(published(version))
    for said in (said for turns in await players for said in turns):
        assert said.token_ids == (int(said.version),) * 2


async def test_turns_that_were_with_a_server_that_died_are_sampled_again_by_the_current_weights(
    engine: VllmEngine, notes: Path, events: Events
) -> None:
    await turn(engine)
    await engine.swap(published(3))
    (notes / "dies").write_text("1")
    said = await asyncio.gather(*(turn(engine, ms=200, seed=seed) for seed in range(8)))
    assert {(one.version, one.token_ids) for one in said} == {("3", (3, 3))}
    starts = [event["folder"] for event in events() if event["event"] == "start"]
    assert starts == ["/nowhere/v0", "/nowhere/v3"], "one start for all of them, from what was published last"


async def test_weights_from_the_network_are_taken_again_by_a_server_that_is_started_again(
    engine: VllmEngine, notes: Path, events: Events
) -> None:
    await turn(engine)
    await engine.swap(Weights("tcp://trainer:1/v6", 6, "abc"))
    (notes / "dies").write_text("1")
    assert (await turn(engine)).token_ids == (6, 6)
    starts = [event["folder"] for event in events() if event["event"] == "start"]
    taken = [event["args"][0] for event in events() if event["event"] == "/collective_rpc"]
    assert starts == ["/nowhere/v0"] * 2 and taken == ["tcp://trainer:1/v6"] * 2


async def test_kill_9_of_the_server_costs_its_turns_time_and_nothing_else(engine: VllmEngine, events: Events) -> None:
    await turn(engine)
    running = asyncio.gather(*(turn(engine, ms=600) for _ in range(4)))
    await asyncio.sleep(0.2)
    os.kill(events()[0]["pid"], signal.SIGKILL)
    assert {one.token_ids for one in await running} == {(0, 0)}


async def test_a_server_that_hangs_is_another_after_the_time_allowed(
    engine: VllmEngine, notes: Path, events: Events
) -> None:
    await turn(engine)
    (notes / "hangs").write_text("1")
    started = time.monotonic()
    assert (await turn(engine)).token_ids == (0, 0)
    assert TIMEOUT_S < time.monotonic() - started < 30
    first, second = (event["pid"] for event in events() if event["event"] == "start")
    assert first != second and not psutil.pid_exists(first)


async def test_what_is_asked_of_a_server_that_is_still_starting_waits_and_the_loop_runs_on(engine: VllmEngine) -> None:
    asked = asyncio.gather(*(turn(engine) for _ in range(4)))
    longest, started = 0.0, time.monotonic()
    before = started
    while not asked.done():
        await asyncio.sleep(0.01)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    assert longest < (before - started) / 3, "a start on the loop would be one long step of it"


async def test_three_deaths_without_a_turn_in_between_end_it(engine: VllmEngine, notes: Path, events: Events) -> None:
    (notes / "dies").write_text("99")
    with pytest.raises(SolverDown, match="tiny: 3 servers in a row died, the last with: tiny: its server ended"):
        await turn(engine)
    with pytest.raises(SolverDown):
        await turn(engine)
    assert names(events()).count("start") == 3


async def test_a_turn_in_between_begins_the_count_anew(engine: VllmEngine, notes: Path) -> None:
    for _ in range(2):
        (notes / "dies").write_text("2")
        assert (await turn(engine)).token_ids == (0, 0)


async def test_servers_that_do_not_come_up_count_as_deaths(engine: VllmEngine, notes: Path, events: Events) -> None:
    (notes / "unborn").write_text("2")
    assert (await turn(engine)).token_ids == (0, 0)
    (notes / "unborn").write_text("99")
    (notes / "dies").write_text("1")
    with pytest.raises(SolverDown, match="RuntimeError: no memory"):
        await turn(engine)
    assert names(events()).count("start") == 3 + 2


async def test_weights_that_are_not_what_was_published_are_told_and_the_server_is_another(
    engine: VllmEngine, notes: Path, events: Events
) -> None:
    await turn(engine)
    (notes / "mistakes").write_text("1")
    with pytest.raises(WrongWeights, match="/nowhere/v1: the model does not compute with them; publish the weights"):
        await engine.swap(published(1))
    assert [event["folder"] for event in events() if event["event"] == "start"] == ["/nowhere/v0", "/nowhere/v1"]
    said = await turn(engine)
    assert (said.version, said.token_ids) == ("1", (1, 1))


async def test_a_cache_that_was_not_forgotten_is_told(engine: VllmEngine, notes: Path) -> None:
    await turn(engine)
    (notes / "remembers").write_text("1")
    with pytest.raises(WrongWeights, match="still caches keys and values"):
        await engine.swap(published(1))
    assert (await turn(engine)).version == "1"


async def test_a_folder_that_does_not_hold_what_was_published_serves_nobody(engine: VllmEngine, notes: Path) -> None:
    await turn(engine)
    (notes / "mistakes").write_text("1")
    (notes / "broken").write_text("99")
    with pytest.raises(ModelError, match="the tensors are not the published"):
        await engine.swap(published(1))
    with pytest.raises(SolverDown, match="the tensors are not the published"):
        await turn(engine)


async def test_a_server_that_dies_in_an_exchange_comes_back_with_the_new_weights(
    engine: VllmEngine, events: Events
) -> None:
    await turn(engine)
    os.kill(events()[0]["pid"], signal.SIGKILL)
    await engine.swap(published(2))
    assert (await turn(engine)).token_ids == (2, 2)


async def test_weights_that_come_before_the_first_turn_are_what_the_server_starts_with(
    engine: VllmEngine, events: Events
) -> None:
    await engine.swap(published(4))
    assert (await turn(engine)).token_ids == (4, 4)
    assert names(events())[:2] == ["start", "/collective_rpc"] and events()[1]["method"] == "check_weights"


async def test_a_turn_that_is_given_up_leaves_the_start_to_the_others(engine: VllmEngine, events: Events) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await turn(engine)
    assert (await turn(engine)).token_ids == (0, 0)
    assert names(events()).count("start") == 1


@pytest.mark.parametrize("wait", [0.0, 0.1, 3.0])
async def test_closing_ends_the_server_and_whoever_waits_for_it(engine: VllmEngine, wait: float) -> None:
    asked = asyncio.ensure_future(turn(engine, ms=60_000))
    await asyncio.sleep(wait)
    await engine.close()
    with pytest.raises(SolverDown, match="tiny: its engine was closed"):
        await asked
    assert not [p for p in psutil.Process().children(recursive=True) if "standin.py" in " ".join(p.cmdline())]
