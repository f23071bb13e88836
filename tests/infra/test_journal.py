import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pydantic import JsonValue

from infra.journal import Journal, JournalError, call_key


class Model:
    """Counts its calls; each takes `seconds`."""

    def __init__(self, seconds: float = 0.0, *, failures: int = 0) -> None:
        self.seconds, self.failures, self.calls = seconds, failures, 0

    async def __call__(self) -> JsonValue:
        self.calls += 1
        await asyncio.sleep(self.seconds)
        if self.calls <= self.failures:
            raise ConnectionError("model gone")
        return {"text": f"reply {self.calls}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "calls.sqlite"


async def test_a_call_is_made_once_also_after_reopening(path: Path) -> None:
    model = Model()
    for _ in range(2):
        with Journal(path) as journal:
            assert await journal.once("k", {}, model) == {"text": "reply 1"}
            assert await journal.once("k", {}, model) == {"text": "reply 1"}
    assert (model.calls, journal.hits, journal.misses) == (1, 2, 0)


async def test_equal_calls_in_flight_are_made_once(path: Path) -> None:
    model = Model(0.05)
    with Journal(path) as journal:
        replies = await asyncio.gather(*(journal.once("k", {}, model) for _ in range(50)))
    assert model.calls == 1 and replies == [{"text": "reply 1"}] * 50
    assert (journal.misses, journal.hits) == (1, 49)


def test_equal_calls_from_the_event_loops_of_several_threads_are_made_once(path: Path) -> None:
    model = Model(0.1)
    with Journal(path) as journal:

        def ask() -> None:
            asyncio.run(journal.once("k", {}, model))  # type: ignore[arg-type]

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (model.calls, journal.hits) == (1, 3)


async def test_when_the_first_of_equal_calls_fails_the_next_makes_it(path: Path) -> None:
    model = Model(0.01, failures=1)
    with Journal(path) as journal:
        first, second = await asyncio.gather(
            journal.once("k", {}, model), journal.once("k", {}, model), return_exceptions=True
        )
    assert isinstance(first, ConnectionError) and second == {"text": "reply 2"}


async def test_when_the_first_of_equal_calls_is_cancelled_the_next_makes_it(path: Path) -> None:
    model = Model(0.05)
    with Journal(path) as journal:
        first = asyncio.create_task(journal.once("k", {}, model))
        second = asyncio.create_task(journal.once("k", {}, model))
        await asyncio.sleep(0.01)
        first.cancel()
        assert await second == {"text": "reply 2"}


async def test_a_response_that_came_is_kept_when_its_reader_is_cancelled(path: Path) -> None:
    answered = asyncio.Event()

    async def make() -> JsonValue:
        answered.set()
        return {"text": "paid for"}

    with Journal(path) as journal:
        reader = asyncio.create_task(journal.once("k", {}, make))
        await answered.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        journal.close()
    with Journal(path) as journal:
        assert journal.get("k") == {"text": "paid for"}


WRITER = """
import sys
from pathlib import Path
from infra.journal import Journal
journal = Journal(Path(sys.argv[1]))
for i in range(100_000):
    journal.put(f"{sys.argv[2]}-{i}", {}, {"i": i})
    print(i, flush=True)
"""


def writer(path: Path, name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True)


def test_no_call_that_returned_is_lost_by_kill_9_of_two_writers(path: Path) -> None:
    writers = {name: writer(path, name) for name in ("a", "b")}
    acknowledged = {}
    for name, process in writers.items():
        assert process.stdout is not None
        for _ in range(200):
            acknowledged[name] = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    for name, process in writers.items():
        rest, _ = process.communicate()
        acknowledged[name] = max([acknowledged[name], *map(int, rest.split())])
    with Journal(path) as journal:
        for name, last in acknowledged.items():
            assert [journal.get(f"{name}-{i}") for i in range(last + 1)] == [{"i": i} for i in range(last + 1)]


def test_the_first_response_to_a_key_stays(path: Path) -> None:
    with Journal(path) as mine, Journal(path) as another_process:
        assert mine.put("k", {}, {"text": "first"}) == {"text": "first"}
        assert another_process.put("k", {}, {"text": "second"}) == {"text": "first"}
        assert len(mine) == 1


async def test_a_locked_database_does_not_hold_up_the_event_loop(path: Path) -> None:
    with Journal(path) as journal, sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        call = asyncio.create_task(journal.once("k", {}, Model()))
        await asyncio.sleep(0.2)  # were the loop held up, the lock below could not be released
        other.execute("ROLLBACK")
        assert await call == {"text": "reply 1"}


def test_a_lock_that_stays_is_an_error_with_a_way_out(path: Path) -> None:
    with Journal(path, lock_timeout_s=0.1) as journal, sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match=r"calls\.sqlite: database is locked; another process writes to it"):
            journal.put("k", {}, {"text": ""})
        other.execute("ROLLBACK")


FILLER = """
import resource, signal, sys
from pathlib import Path
from infra.journal import Journal, JournalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
journal = Journal(Path(sys.argv[1]))
try:
    for i in range(1000):
        journal.put(str(i), {}, {"text": "x" * 10_000})
except JournalError as error:
    print(i, error)
"""


def test_when_no_more_can_be_written_what_is_stored_stays_readable(path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", FILLER, str(path)], capture_output=True, text=True, check=True)
    stored, _, message = run.stdout.partition(" ")
    assert message.strip().endswith("the calls stored so far are kept")
    with Journal(path) as journal:
        assert len(journal) == int(stored) > 10
        assert journal.put("later", {}, {"text": ""}) == {"text": ""}


def test_a_full_disk_is_named(path: Path) -> None:
    with Journal(path) as journal:
        journal.put("before", {}, {"text": ""})
        pages = journal._run(lambda: journal._db.execute("PRAGMA page_count").fetchone()[0]).result()
        journal._run(lambda: journal._db.execute(f"PRAGMA max_page_count = {pages}")).result()
        with pytest.raises(JournalError, match="database or disk is full; free some space"):
            journal.put("k", {}, {"text": "x" * 100_000})
        assert journal.get("before") == {"text": ""}


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (path := tmp_path / "calls.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(JournalError, match="file is not a database; it is damaged or no journal; move it away"):
        Journal(path)
    assert path.read_bytes() == b"not a database" * 100


def test_a_journal_cut_short_is_refused_by_name(path: Path) -> None:
    with Journal(path) as journal:
        for i in range(100):
            journal.put(str(i), {}, {"text": "x" * 1000})
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(JournalError, match="malformed; it is damaged"), Journal(path) as journal:
        [journal.get(str(i)) for i in range(100)]


def test_a_folder_in_the_journals_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="unable to open database file; check the disk and the permissions"):
        Journal(tmp_path)


def test_closing_twice_is_harmless(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    journal.close()


def test_everything_that_determines_a_call_is_in_its_key() -> None:
    call = {"model": "memory", "revision": "r1", "prompt": [1, 2], "seed": 1}
    keys = {call_key(call), *(call_key(call | {name: 7}) for name in call)}
    assert len(keys) == 5 and call_key(dict(reversed(call.items()))) in keys
