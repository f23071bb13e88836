"""Whatever happens, an attempt is open, finished, trained or dropped, and the counts close."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.simulated import tasks, turn
from infra.settings import ROOT
from rl.learn.records import Batch
from rl.train.buffer import Buffer, BufferError, Counts
from rl.train.parts import Order
from tests.rl.train.attempts import diagnosis, graded


@pytest.fixture
def buffer(tmp_path):
    buffer = Buffer(tmp_path / "buffer.sqlite")
    yield buffer
    buffer.close()


def settled(trained: list[str], dropped: dict[str, str]) -> Batch:
    return Batch(rows=(), trained=tuple(trained), dropped=dropped)


async def test_an_attempt_goes_from_open_to_finished_to_trained_or_dropped(buffer):
    members = await buffer.admit(0, 0, "a", [11, 12])
    assert [(m.uid, m.seed, m.saved) for m in members] == [("0-a/0", 11, None), ("0-a/1", 12, None)]
    assert await buffer.counts() == Counts(admitted=2, trained=0, dropped={}, suspended=2)
    await buffer.finish(graded("0-a/0", True), diagnosis(True), 1.0)
    assert await buffer.ready() == []
    await buffer.finish(graded("0-a/1", False), diagnosis(False), 1.0)
    assert await buffer.ready() == ["0-a"]
    await buffer.take(1, ["0-a"])
    assert await buffer.ready() == []
    assert [[one.uid for one in group] for group in await buffer.batch(1)] == [["0-a/0", "0-a/1"]]
    await buffer.settle(1, settled(["0-a/0"], {"0-a/1": "negative_cap"}), {"loss/trained": 0.5}, 2.0)
    counts = await buffer.counts()
    assert counts == Counts(admitted=2, trained=1, dropped={"negative_cap": 1}, suspended=0)
    assert counts.missing == 0
    assert await buffer.metrics() == [(1, 2.0, {"loss/trained": 0.5})]


async def test_a_task_is_admitted_once_an_epoch(buffer):
    await buffer.admit(0, 0, "a", [1, 2])
    with pytest.raises(BufferError, match="UNIQUE"):
        await buffer.admit(1, 0, "a", [1, 2])
    await buffer.admit(1, 1, "a", [1, 2])
    assert await buffer.begun() == 2
    assert (await buffer.counts()).admitted == 4  # nothing of the refused one is left


async def test_a_group_is_in_one_batch_and_a_step_has_one(buffer):
    await buffer.admit(0, 0, "a", [1])
    await buffer.finish(graded("0-a/0", True), diagnosis(True), 0.0)
    await buffer.take(1, ["0-a"])
    with pytest.raises(BufferError, match="in a batch already"):
        await buffer.take(2, ["0-a"])
    assert await buffer.last_step() == 1  # the refused batch was not written down
    with pytest.raises(BufferError, match="UNIQUE"):
        await buffer.take(1, [])


async def test_an_attempt_ends_once(buffer):
    await buffer.admit(0, 0, "a", [1])
    await buffer.finish(graded("0-a/0", True), diagnosis(True), 0.0)
    with pytest.raises(BufferError, match="over already"):
        await buffer.finish(graded("0-a/0", False), diagnosis(False), 0.0)
    with pytest.raises(BufferError, match="over already"):
        await buffer.save(Order(uid="0-a/0", task=tasks(1)[0], seed=1))


async def test_a_step_settles_its_own_attempts_only(buffer):
    for number, name in enumerate("ab"):
        await buffer.admit(number, 0, name, [1])
        await buffer.finish(graded(f"0-{name}/0", True), diagnosis(True), 0.0)
    await buffer.take(1, ["0-a"])
    with pytest.raises(BufferError, match="not of its batch"):
        await buffer.settle(1, settled(["0-a/0", "0-b/0"], {}), {}, 0.0)
    assert (await buffer.counts()).trained == 0


async def test_a_step_taken_again_keeps_what_it_said_first(buffer):
    await buffer.admit(0, 0, "a", [1])
    await buffer.finish(graded("0-a/0", True), diagnosis(True), 0.0)
    await buffer.take(1, ["0-a"])
    for seconds, gauges in ((5.0, {"in_flight/attempts": 7.0}), (1.0, {})):
        await buffer.settle(1, settled(["0-a/0"], {}), {"loss/trained": 1.0, **gauges}, seconds)
    assert await buffer.metrics() == [(1, 5.0, {"loss/trained": 1.0, "in_flight/attempts": 7.0})]
    assert (await buffer.counts()).trained == 1


async def test_what_was_put_aside_comes_back_first_and_as_it_was(buffer):
    first = await buffer.admit(0, 0, "a", [1, 2])
    await buffer.admit(1, 0, "b", [3, 4])
    order = Order(uid="0-b/1", task=tasks(1)[0], seed=4, turns=(turn(0),), spent=7.5)
    await buffer.save(order)
    waiting = await buffer.open()
    assert [one.uid for one in waiting] == ["0-b/1", *(one.uid for one in first), "0-b/0"]
    assert waiting[0].saved == order


async def test_what_was_archived_is_handed_over_once_and_forgotten(buffer):
    await buffer.admit(0, 0, "a", [1])
    await buffer.finish(graded("0-a/0", True, task_id="a"), diagnosis(True), 0.0)
    await buffer.take(1, ["0-a"])
    await buffer.settle(1, settled(["0-a/0"], {}), {}, 0.0)
    seen: list[str] = []
    for _ in range(2):
        await buffer.archive(1, lambda attempts: seen.extend(one.uid for one in attempts))
    assert seen == ["0-a/0"]
    with pytest.raises(BufferError, match="archived with a checkpoint that is gone"):
        await buffer.batch(1)
    assert [(one.task_id, one.diagnosis, one.version) for one in await buffer.ended()] == [("a", diagnosis(True), "0")]


async def test_a_failed_archive_forgets_nothing(buffer):
    await buffer.admit(0, 0, "a", [1])
    await buffer.finish(graded("0-a/0", True), diagnosis(True), 0.0)
    await buffer.take(1, ["0-a"])

    def broken(attempts: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(BufferError, match="see that there is space and run again"):
        await buffer.archive(1, broken)
    assert len(await buffer.batch(1)) == 1


def test_a_damaged_file_says_how_to_go_on_without_it(tmp_path):
    (tmp_path / "buffer.sqlite").write_bytes(b"no database" * 500)
    with pytest.raises(
        BufferError, match="is not a database; remove it to go on from the copy in the run's last checkpoint"
    ):
        Buffer(tmp_path / "buffer.sqlite")


async def test_a_copy_is_a_buffer(buffer, tmp_path):
    await buffer.admit(0, 0, "a", [1])
    await buffer.copy(tmp_path / "copy.sqlite")
    copy = Buffer(tmp_path / "copy.sqlite")
    assert await copy.counts() == await buffer.counts()
    copy.close()


def test_what_is_no_buffer_is_refused(tmp_path):
    (tmp_path / "buffer.sqlite").write_text("no database, but long enough to be taken for the header of one" * 20)
    with pytest.raises(BufferError, match="not a database"):
        Buffer(tmp_path / "buffer.sqlite")


async def test_what_was_admitted_survives_kill_9(tmp_path):
    code = """
        import asyncio, os, signal, sys
        from pathlib import Path
        from rl.train.buffer import Buffer
        from tests.rl.train.attempts import diagnosis, graded

        async def main():
            buffer = Buffer(Path(sys.argv[1]))
            for number in range(1000):
                await buffer.admit(number, 0, f"t{number}", [1, 2])
                await buffer.finish(graded(f"0-t{number}/0", True), diagnosis(True), 0.0)
                print(number, flush=True)

        asyncio.run(main())
        """
    path = tmp_path / "buffer.sqlite"
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) == 20:
            os.kill(writer.pid, signal.SIGKILL)
            break
    told = 20 + sum(1 for _ in writer.stdout)
    writer.wait()
    buffer = Buffer(path)
    counts = await buffer.counts()
    buffer.close()
    assert counts.admitted in {2 * (told + 1), 2 * (told + 2)}
    assert counts.missing == 0


def test_a_buffer_of_another_version_is_refused(tmp_path):
    path = tmp_path / "buffer.sqlite"
    with sqlite3.connect(path) as older:
        older.execute("CREATE TABLE attempts (uid TEXT PRIMARY KEY)")
    older.close()
    with pytest.raises(BufferError, match=r"buffer\.sqlite: is of another version of this project; begin the run anew"):
        Buffer(path)
    Buffer(tmp_path / "new.sqlite").close()
    Buffer(tmp_path / "new.sqlite").close()


def test_whoever_opens_a_new_buffer_while_another_does_finds_it_whole(tmp_path):
    for time in range(40):
        with ThreadPoolExecutor(4) as threads:
            starts = threading.Barrier(4)

            def open_it(path=tmp_path / f"{time}.sqlite", starts=starts):
                starts.wait()
                Buffer(path).close()

            for opened in [threads.submit(open_it) for _ in range(4)]:
                opened.result()
