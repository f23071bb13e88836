"""The sandbox on this machine: how fast a call and a session are, how many sessions fit, and what gets out."""

import statistics
import time

from bench import escapes
from bench.figures import Figure
from infra.sandbox import Sandbox
from infra.sandbox.watch import usage
from pipeline import grading

CALLS, COLD, IDLE = 300, 20, 24
TITLE = ("what", "value")
_STATE = "from math import sqrt\nxs = [sqrt(i) for i in range(1000)]\ntext = 'a page' * 1000"


async def warm_call_ms() -> list[float]:
    """Calls of a session that lives."""
    async with Sandbox() as sandbox:
        await sandbox.run("one", "x = 0")
        return [await _timed(sandbox, "one", "x += 1; x") for _ in range(CALLS)]


async def cold_session_ms() -> list[float]:
    """First calls of sessions for which no interpreter stands ready."""
    async with Sandbox(pool=0) as sandbox:
        await sandbox.run("takes the one that entering made", "1")
        return [await _timed(sandbox, f"cold {i}", "x = 0") for i in range(COLD)]


async def session_bytes() -> float:
    """Of one idle session with a little state, everything that serves it included; pages that sessions share are split among them."""
    async with Sandbox(pool=0) as sandbox:
        for i in range(IDLE):
            await sandbox.run(f"idle {i}", _STATE)
        boxes = sandbox.boxes
        return usage([box.pid for box in boxes]).memory() / len(boxes)


async def _timed(sandbox: Sandbox, session: str, code: str) -> float:
    started = time.perf_counter()
    await sandbox.run(session, code)
    return (time.perf_counter() - started) * 1000


async def measure() -> tuple[list[tuple[str, str]], list[Figure]]:
    """Rows of a table (what, value), and the figures."""
    before = escapes.Baseline.now()
    warm, cold, size = await warm_call_ms(), await cold_session_ms(), await session_bytes()
    found = [(name, how) async for name, how in escapes.drill()]
    grading.close()
    leaks = before.leaks()
    out = [(f"escaped: {name}", how) for name, how in found if how]
    rows = [
        ("warm call, p50 / p99", f"{statistics.median(warm):.2f} / {_p99(warm):.2f} ms"),
        ("cold session, p50 / p99", f"{statistics.median(cold):.0f} / {_p99(cold):.0f} ms"),
        ("one idle session", f"{size / 2**20:.1f} MiB"),
        ("attacks and forgeries tried", str(len(found))),
        *out,
    ]
    figures = [
        Figure("sandbox_warm_call_p50_ms", statistics.median(warm), "< 15 ms"),
        Figure("sandbox_cold_session_p50_ms", statistics.median(cold), "< 150 ms"),
        Figure("sandbox_sessions_per_gib", 2**30 // size, ">= 1"),
        Figure("escapes", len(out), "== 0"),
        Figure("sandbox_zombies", leaks.zombies, "== 0"),
        Figure("sandbox_descriptors_leaked", leaks.descriptors, "== 0"),
    ]
    return rows, figures


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
