"""Run a command so that nothing of it outlives its starter: `python guard.py COMMAND...`, started in its own process group.

The starter holds the other end of this process's standard input. When that closes, on purpose or because the starter was
killed, the whole group is told to end and, after `GRACE_S`, killed. The same happens to what a dead command leaves behind.
With `--of PID` before the command the starter is that process instead, and standard input is the command's.
A death signal alone would not do: it follows the starting *thread*, and reaches only the first process of the command.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 15.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_group() -> None:
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _when_starter_ends(starter: int | None) -> None:
    if starter is None:
        while os.read(0, 4096):
            pass
    else:
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(starter)], [], [])
    _end_group()


def main() -> int:
    """The command's exit code; 128 + the signal's number where a signal ended it."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # ours to survive; the command starts with the default
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    arguments = sys.argv[1:]
    starter = int(arguments[1]) if arguments[0] == "--of" else None
    command = subprocess.Popen(
        arguments if starter is None else arguments[2:],
        stdin=subprocess.DEVNULL if starter is None else None,
        preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),  # for the case that this process is killed
    )
    if starter is not None:  # the command's streams: they must close when it ends
        os.dup2(2, 1)
        os.close(0)
    threading.Thread(target=_when_starter_ends, args=[starter], daemon=True).start()
    code = command.wait()
    threading.Thread(target=_end_group, daemon=True).start()
    while True:
        try:
            os.wait()  # orphans of the command are our children now
        except ChildProcessError:
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
