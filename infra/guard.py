"""Run a command so that nothing of it outlives its starter: `python guard.py COMMAND...`, started in its own process group.

The starter holds the other end of this process's standard input. When that closes, on purpose or because the starter was
killed, the whole group is told to end and, after `GRACE_S`, killed. The same happens to what a dead command leaves behind.
A death signal alone would not do: it follows the starting *thread*, and reaches only the first process of the command.
"""

import ctypes
import os
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


def _when_starter_ends() -> None:
    while os.read(0, 4096):
        pass
    _end_group()


def main() -> int:
    """The command's exit code; 128 + the signal's number where a signal ended it."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # ours to survive; the command starts with the default
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    command = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),  # for the case that this process is killed
    )
    threading.Thread(target=_when_starter_ends, daemon=True).start()
    code = command.wait()
    threading.Thread(target=_end_group, daemon=True).start()
    while True:
        try:
            os.wait()  # orphans of the command are our children now
        except ChildProcessError:
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
