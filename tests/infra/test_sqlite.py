"""A file that two processes make at once is made once, and neither is turned away."""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infra.sqlite import connect

FILES = 20
MAKER = """
import sys, time
from pathlib import Path
from infra.sqlite import connect
print(flush=True)
began = float(sys.stdin.readline())
for i in range(int(sys.argv[2])):
    while time.time() < began + 0.05 * i:
        pass
    db = connect(Path(sys.argv[1]) / str(i))
    db.execute("CREATE TABLE IF NOT EXISTS made (by_whom INTEGER)")
    db.execute("INSERT INTO made VALUES (1)")
"""


def test_two_processes_may_make_a_file_at_the_same_time(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(tmp_path), str(FILES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for maker in makers:
        assert maker.stdout is not None and maker.stdout.readline() == "\n"
    began = time.time() + 0.2
    for maker in makers:
        assert maker.stdin is not None
        print(began, file=maker.stdin, flush=True)
    said = [maker.communicate()[1] for maker in makers]
    assert said == ["", ""]
    for i in range(FILES):
        assert connect(tmp_path / str(i)).execute("SELECT count(*) FROM made").fetchone() == (2,)


def test_a_lock_that_stays_is_told_when_the_time_is_over(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "held", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            connect(tmp_path / "held", timeout_s=0.1)
        holder.execute("ROLLBACK")
    assert connect(tmp_path / "held").execute("PRAGMA journal_mode").fetchone() == ("wal",)
