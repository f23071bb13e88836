"""Processes that read HTML, killed when they overrun.

Invariants: a process serves one page at a time; at most `size` live at once; one that overran or died is reaped before its
caller returns, and costs that page alone; all end with this one, when their input closes.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from infra.pages.base import Link, PageError
from infra.settings import ROOT

SECONDS = 10
"""Of processor time for one page; most take a twentieth of one. So what is read does not hang on how busy the machine is."""
PATIENCE = 60.0
"""Seconds by the clock after which a page is given up all the same."""
BYTES = 5 * 2**20
"""Of one page; a longer one is not read."""
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Extracted:
    """What HTML says. Targets of links are absolute addresses; `title` and `tab` (a browser's) may be empty."""

    title: str
    tab: str
    text: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Html:
    """A page to read. Relative links start at `url`; `charset` is what the server says, if it does; `plain` text has no tags."""

    url: str
    body: bytes
    charset: str = ""
    plain: bool = False


class Extractor:
    """Reads pages in up to `size` processes, which start when they are needed."""

    def __init__(
        self, size: int = min(4, os.cpu_count() or 1), seconds: int = SECONDS, patience: float = PATIENCE
    ) -> None:
        self._seconds = seconds
        self._patience = patience
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="pages")
        self._idle: list[subprocess.Popen[bytes]] = []

    async def read(self, html: Html) -> Extracted:
        """Raises `PageError`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, html)

    def read_all(self, pages: Iterable[Html | PageError]) -> Iterator[Extracted | PageError]:
        """What each page says, in order, or why it cannot be read; `pages` is read a little ahead."""
        source = iter(pages)
        while batch := list(islice(source, _BATCH)):
            yield from self._threads.map(self._tried, batch)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        while self._idle:
            _end(self._idle.pop())

    def _tried(self, html: Html | PageError) -> Extracted | PageError:
        try:
            return html if isinstance(html, PageError) else self._read(html)
        except PageError as error:
            return error

    def _read(self, html: Html) -> Extracted:
        if len(html.body) > BYTES:
            raise PageError(f"{html.url}: is longer than {BYTES >> 20} MiB; not read")
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _start()
        overran = threading.Event()

        def expire() -> None:
            overran.set()
            worker.kill()

        timer = threading.Timer(self._patience, expire)
        timer.start()
        try:
            line = _ask(worker, html, self._seconds)
        finally:
            timer.cancel()
            timer.join()
        if overran.is_set() or not line.endswith(b"\n"):
            _end(worker)
            raise PageError(f"{html.url}: takes longer to read or more memory than is allowed; not shown")
        self._idle.append(worker)
        reply = json.loads(line)
        if "error" in reply:
            raise PageError(f"{html.url}: {reply['error']}; not shown")
        return Extracted(reply["title"], reply["tab"], reply["text"], tuple(Link(*pair) for pair in reply["links"]))


def _start() -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "infra.pages.extract"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C goes to the owner, who decides what to end
    )


def _ask(worker: subprocess.Popen[bytes], html: Html, seconds: int) -> bytes:
    """The reply line, cut or empty where the process ended."""
    assert worker.stdin is not None and worker.stdout is not None
    about = {"url": html.url, "charset": html.charset, "plain": html.plain}
    request = {"page": about, "length": len(html.body), "seconds": seconds}
    try:
        worker.stdin.write(json.dumps(request).encode() + b"\n" + html.body)
        worker.stdin.flush()
        return worker.stdout.readline()
    except OSError:
        return b""


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        assert pipe is not None
        try:
            pipe.close()
        except OSError:
            continue
