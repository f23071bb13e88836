"""The escape drill: every attack, beside a neighbour who must not notice.

An attack has escaped if it says so, if a secret of the host is in its output, if a listener of the host was reached, if a process
of the host died, or if a limit that should have ended it did not. So has a program that is graded right and is not.
"""

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.attacks import ATTACKS, FORGERIES, PRELUDE, Attack
from infra.sandbox import Outcome, Sandbox
from infra.sandbox.watch import children
from pipeline.grading import Verdict, agrade
from schemas.answer import CodeAnswer

SECONDS, ENDLESS = 30.0, 1.0
"""For an attack, and for one that would run for ever."""
AT_ONCE = 4
"""Attacks that run beside each other."""


class Host:
    """What attacks aim at: secrets, listeners and processes of this machine. Use as a context manager."""

    def __init__(self) -> None:
        self.won = f"won-{secrets.token_hex(8)}"
        self.canary = f"canary-{secrets.token_hex(8)}"
        self.reached: list[str] = []
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> "Host":
        folder = Path(self._exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        file = folder / "hidden_test.py"
        file.write_text(self.canary)
        os.environ["SECRET_KEY"] = self.canary
        self._exits.callback(os.environ.pop, "SECRET_KEY")
        secret = Path(f"/tmp/touchstone-{secrets.token_hex(8)}")  # noqa: S108
        self._exits.callback(secret.unlink, missing_ok=True)  # it is the host's where a neighbour is not isolated
        path, abstract = str(folder / "socket"), f"touchstone-{secrets.token_hex(8)}"
        self._stream = self._listener(socket.AF_INET, ("127.0.0.1", 0))
        self.port = self._stream.getsockname()[1]
        self._datagrams = self._exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._datagrams.bind(("127.0.0.1", self.port))
        self._datagrams.setblocking(False)
        self._listeners = [self._stream, self._listener(socket.AF_UNIX, path)]
        self._listeners.append(self._listener(socket.AF_UNIX, "\0" + abstract))
        os.chmod(path, 0o777)  # noqa: S103
        self.victim = subprocess.Popen(["sleep", "600"])
        self._exits.callback(self.victim.wait)
        self._exits.callback(self.victim.kill)
        self._facts = {
            "PORT": self.port, "SOCKET": path, "ABSTRACT": abstract, "FILE": file, "PID": os.getpid(), "VICTIM": self.victim.pid,
            "HOST": socket.gethostname(), "SECRET": secret, "WON": self.won.encode().hex(),
        }  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _listener(self, family: int, address: str | tuple[str, int]) -> socket.socket:
        listener = self._exits.enter_context(socket.socket(family, socket.SOCK_STREAM))
        listener.bind(address)
        listener.listen()
        listener.setblocking(False)
        return listener

    def code(self, text: str) -> str:
        for name, value in self._facts.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def hurt(self) -> str:
        """What of the host was reached since the last look."""
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                return f"reached {listener.getsockname()}"
        with contextlib.suppress(BlockingIOError):
            self._datagrams.recv(9)
            return "reached by a datagram"
        return "" if self.victim.poll() is None else "a process of the host was killed"


async def escaped(sandbox: Sandbox, host: Host, attack: Attack) -> str:
    """How the attack got out; empty where it was contained and its neighbour kept its state."""
    attacker, neighbour = f"attacker: {attack.name}", f"neighbour of: {attack.name}"
    await sandbox.run(neighbour, host.code(f"open('@SECRET@', 'w').write({host.canary!r}); mine = 41"))
    before = (await sandbox.run(attacker, host.code(PRELUDE))).outcome
    ran = await sandbox.run(attacker, host.code(attack.code), ENDLESS if attack.ends is Outcome.TIMEOUT else SECONDS)
    after = await sandbox.run(neighbour, "mine + 1")
    await sandbox.end(attacker)
    await sandbox.end(neighbour)
    if before is not Outcome.OK:
        return f"it could not start: {before}"
    if host.won in ran.output or host.canary in ran.output:
        return f"it saw what it should not: {ran.output[:500]}"
    if attack.ends is not None and ran.outcome is not attack.ends:
        return f"it ended as {ran.outcome}, not as {attack.ends}: {ran.output[-500:]}"
    if (after.output, after.restored) != ("42\n", False):
        return f"its neighbour noticed: {after}"
    return host.hurt()


@dataclass(frozen=True, slots=True)
class Leaks:
    """What is left over once all is closed."""

    zombies: int
    processes: int
    descriptors: int


@dataclass
class Baseline:
    """Processes and descriptors of this process at one moment."""

    processes: int
    descriptors: int

    @classmethod
    def now(cls) -> "Baseline":
        return cls(len(children(os.getpid())), len(os.listdir("/proc/self/fd")))

    def leaks(self) -> Leaks:
        now = Baseline.now()
        zombies = sum(
            Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z" for pid in children(os.getpid())
        )
        return Leaks(zombies, now.processes - self.processes, now.descriptors - self.descriptors)


ADD = CodeAnswer(entry="add", cases=(("[1, 2]", "3"), ("[5, 7]", "12"), ('["a", "b"]', '"ab"')))


async def drill() -> AsyncIterator[tuple[str, str]]:
    """The name of every attack and forgery, with how it got out: empty where it did not."""
    turn = asyncio.Semaphore(AT_ONCE)
    with Host() as host:
        async with Sandbox(pool=2 * AT_ONCE) as sandbox:

            async def tried(attack: Attack) -> tuple[str, str]:
                async with turn:
                    return attack.name, await escaped(sandbox, host, attack)

            for found in asyncio.as_completed([tried(attack) for attack in ATTACKS]):
                yield await found
    for name, code in FORGERIES.items():
        grade = await agrade(ADD, code)
        yield name, "" if grade.verdict is Verdict.WRONG else f"it was graded {grade}"
