import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from infra import guard

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
"""A command with a child that would outlive it."""


@contextmanager
def guarded(command: str, by: str = guard.__file__) -> Iterator["subprocess.Popen[str]"]:
    started = [sys.executable, "-I", by, sys.executable, "-c", command]
    process = subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def family(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Guard, command and the command's child, once all three are there."""
    assert process.stdout is not None
    grandchild = psutil.Process(int(process.stdout.readline()))
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert len(everyone) == 3 and grandchild in everyone
    return everyone


def survivors(processes: list[psutil.Process], within_s: float = 10.0) -> list[psutil.Process]:
    return psutil.wait_procs(processes, timeout=within_s)[1]


def test_the_command_s_exit_code_is_passed_on() -> None:
    with guarded("raise SystemExit(7)") as process:
        assert process.wait(20) == 7


def test_a_command_ended_by_a_signal_says_which() -> None:
    with guarded("import os; os.kill(os.getpid(), 9)") as process:
        assert process.wait(20) == 128 + signal.SIGKILL


def test_closing_the_pipe_ends_the_whole_family() -> None:
    with guarded(FAMILY) as process:
        everyone = family(process)
        assert process.stdin is not None
        process.stdin.close()
        assert survivors(everyone) == []


def test_what_a_dead_command_leaves_behind_is_ended() -> None:
    with guarded(FAMILY) as process:
        _, command, _ = everyone = family(process)
        command.kill()
        assert survivors(everyone) == []


STARTER = """
import subprocess, sys, time
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, process_group=0)
time.sleep(600)
"""


def test_kill_9_of_the_starter_ends_the_whole_family() -> None:
    command = [sys.executable, "-I", guard.__file__, sys.executable, "-c", FAMILY]
    with subprocess.Popen([sys.executable, "-c", STARTER, *command], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        everyone = psutil.Process(starter.pid).children(recursive=True)
        assert len(everyone) == 3
        starter.kill()
        assert survivors(everyone) == []


STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""


def test_a_command_deaf_to_the_polite_signal_is_killed(tmp_path: Path) -> None:
    (impatient := tmp_path / "guard.py").write_text(
        Path(guard.__file__).read_text().replace("GRACE_S = 15.0", "GRACE_S = 0.5")
    )
    with guarded(STUBBORN, str(impatient)) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
        started = time.monotonic()
        process.stdin.close()
        assert survivors(everyone) == [] and time.monotonic() - started > 0.4


def test_kill_9_of_the_guard_tells_the_command_to_end() -> None:
    with guarded(FAMILY) as process:
        _, command, _ = family(process)
        process.kill()
        assert survivors([command]) == []
