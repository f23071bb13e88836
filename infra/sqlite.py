"""SQLite files that several processes share: a write-ahead log, and patience where SQLite has none of its own."""

import sqlite3
import time
from pathlib import Path

POLL_S = 0.02


def connect(path: Path | None, *, timeout_s: float = 30.0) -> sqlite3.Connection:
    """A connection for whichever thread, each statement a transaction of its own; in memory where there is no `path`.

    A commit reaches the operating system before it returns; only a power cut can lose the last ones. Raises `sqlite3.Error`.
    """
    db = sqlite3.connect(path or ":memory:", timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(db, time.monotonic() + timeout_s)
        db.execute("PRAGMA synchronous=NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection, deadline: float) -> None:
    """Of two connections that turn a new file's log on at once, SQLite refuses one and does not wait as it does elsewhere."""
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)
