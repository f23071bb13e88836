"""Our trainer against TRL's, our rollouts against those of verifiers: same tokens, same server, same tools, in turns.

Both sides take a measurement one after the other, `ROUNDS` times after one that warms them up, so
that whatever else the machine does falls on both. Ratios are of medians of wall time; CPU time stands beside it.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench import rows
from bench.crowd import task
from bench.figures import Figure, Row
from bench.peers import Peer, peer, started
from infra.client import ModelClient
from infra.endpoint import Endpoint
from infra.settings import ASSETS, Settings
from pipeline.corpora import load_world
from rl.env import Env
from rl.formats import load_format
from rl.learn.learner import TrainerSetup
from rl.learn.trainer import TorchTrainer
from rl.rollout import ServedSampler, rollout
from rl.tooling import local_tools
from schemas.episode import Limits
from schemas.training import LossOptions, OptimiserOptions
from schemas.trajectory import StopReason

ROUNDS = 3
ATTEMPTS, GROUP = 32, 8
MICRO = (1, 4, 16)
"""Rows of TRL's micro-batches: small ones pad less, large ones call less. Its best is what we are compared with."""
EPISODES, IN_FLIGHT = 256, 64
RATE = 1e-5
TITLE = ("what", "side", "amount", "seconds min", "seconds median", "CPU s median", "a second")
Took = tuple[float, float]
"""Seconds of wall and of CPU."""


async def measure() -> tuple[list[Row], list[Figure]]:
    """Rows for `TITLE`, and the figures."""
    trained, train_ratio = await training()
    played, play_ratio = await playing()
    return [*trained, *played], [
        Figure("speed_trained_tokens_ratio_to_trl", train_ratio, ">= 1"),
        Figure("speed_trajectories_ratio_to_verifiers", play_ratio, ">= 1"),
    ]


async def training() -> tuple[list[Row], float]:
    starter = ASSETS / "starter"
    options = OptimiserOptions(rate=RATE, threads=1)
    vocabulary = json.loads((starter / "config.json").read_text("utf-8"))["vocab_size"]
    batch = rows.batch(ATTEMPTS, vocabulary, GROUP)
    sampled = sum(int(row.targets.sum()) for row in batch.rows)
    with TemporaryDirectory() as folder:
        given = Path(folder) / "rows.json"
        rows.write(batch.rows, given, group=GROUP, rate=RATE, betas=(options.beta1, options.beta2))
        trainer = TorchTrainer(TrainerSetup(str(starter), folder, options, LossOptions(), temperature=1.0))
        found: list[Row] = []
        ratios: list[float] = []
        for micro in MICRO:
            with peer("trl", "trl_side", str(given), str(starter), str(micro)) as other:
                took = await in_turns(lambda: trainer.step(batch), other, "step")
            some, ratio = table("trained tokens", ("ours", f"trl, {micro} rows at once"), sampled, took)
            found, ratios = [*found, *some], [*ratios, ratio]
        await trainer.close()
    return found, min(ratios)


async def playing() -> tuple[list[Row], float]:
    world = await asyncio.to_thread(load_world, "atlas", Settings.from_env().cache)
    tools, format = local_tools(world), load_format(ASSETS / "starter")
    asked, limits = task("search", "open"), Limits(max_turns=10, context=8192, max_tokens=256)
    slots = asyncio.Semaphore(IN_FLIGHT)
    with started("bench.stand_in") as server:
        url = f"http://127.0.0.1:{server.hear()['port']}/v1"
        async with ModelClient(Endpoint(url, "", "scripted", "r1"), None, IN_FLIGHT) as client:

            async def episode(seed: int) -> None:
                async with slots:
                    env = Env(tools, format, limits)
                    ended = await rollout(asked, seed, env=env, sampler=ServedSampler(client, "0"), solver="scripted")
                assert (ended.stop, ended.answer, len(ended.turns)) == (StopReason.ANSWERED, "Niger", 5), ended.error

            async def play() -> None:
                await asyncio.gather(*(episode(seed) for seed in range(EPISODES)))

            with peer("verifiers", "verifiers_side", url, str(IN_FLIGHT)) as other:
                took = await in_turns(play, other, str(EPISODES))
    return table("trajectories", ("ours", "verifiers"), EPISODES, took)


async def in_turns(ours: Callable[[], Awaitable[object]], other: Peer, line: str) -> list[tuple[Took, Took]]:
    """What each side took, round by round; the first round, which warms up, is left out."""
    took = []
    for _ in range(ROUNDS + 1):
        began, cpu = time.perf_counter(), time.process_time()
        await ours()
        mine = time.perf_counter() - began, time.process_time() - cpu
        answer = await asyncio.to_thread(other.ask, line)
        took.append((mine, (answer["seconds"], answer["cpu"])))
    return took[1:]


def table(what: str, sides: tuple[str, str], amount: int, took: list[tuple[Took, Took]]) -> tuple[list[Row], float]:
    """A row a side, and how many times as fast as the other we are."""
    found: list[Row] = []
    medians: list[float] = []
    for side, pairs in zip(sides, zip(*took, strict=True), strict=True):
        wall, cpu = [pair[0] for pair in pairs], median(pair[1] for pair in pairs)
        medians.append(median(wall))
        per_second = round(amount / medians[-1], 1)
        found.append((what, side, amount, round(min(wall), 2), round(medians[-1], 2), round(cpu, 2), per_second))
    return found, medians[1] / medians[0]
