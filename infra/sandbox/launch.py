"""Become an ordinary user, then bubblewrap: `python launch.py UID BWRAP LIBRARIES SECCOMP [SOURCE TARGET]... -- ARGUMENT... -- COMMAND`

The process caps of a user id do not bind root, so root becomes UID; -1 keeps who we are. As that user may not reach what is to be
mounted (an interpreter below `/root`), root first binds it where it can, in a mount namespace that ends with this process.
SECCOMP is a program in hex. Bubblewrap reads its arguments from a file, as its command line can be read from inside.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Sequence

STAGE = "/tmp"  # noqa: S108
_NEW_MOUNTS, _BIND, _PRIVATE = 0x20000, 0x1000, 0x44000
_libc = ctypes.CDLL(None, use_errno=True)


def _file(content: bytes) -> int:
    descriptor = os.memfd_create("launch", 0)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _done(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _staged(sources: Sequence[str]) -> list[str]:
    """Other names of the sources, which any user may open. Raises `OSError` where root may not mount."""
    _done(_libc.unshare(_NEW_MOUNTS))
    _done(_libc.mount(None, b"/", None, _PRIVATE, None))
    opened = [os.open(source, os.O_PATH) for source in sources]
    _done(_libc.mount(b"tmpfs", STAGE.encode(), b"tmpfs", 0, b"mode=755,size=1m"))
    names = []
    for number, descriptor in enumerate(opened):
        name = f"{STAGE}/{number}"
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.mkdir(name)
        else:
            os.close(os.open(name, os.O_CREAT))
        _done(_libc.mount(f"/proc/self/fd/{descriptor}".encode(), name.encode(), None, _BIND, None))
        names.append(name)
    return names


def main() -> None:
    uid, bwrap, libraries, seccomp, *rest = sys.argv[1:]
    dash = rest.index("--")
    sources, targets = rest[:dash:2], rest[1:dash:2]
    command = rest.index("--", dash + 1)
    program = os.open(bwrap, os.O_RDONLY)
    if uid != "-1":
        try:
            sources, libraries = [*_staged([*sources, libraries or "/"])], libraries and f"{STAGE}/{len(sources)}"
            sources.pop()
        except OSError:  # the user then reaches what its owners let it
            pass
        os.setgroups([])
        os.setresgid(int(uid), int(uid), int(uid))
        os.setresuid(int(uid), int(uid), int(uid))
    arguments = ["--seccomp", str(_file(bytes.fromhex(seccomp)))]
    for source, target in zip(sources, targets, strict=True):
        arguments += ["--ro-bind", source, target]
    arguments += rest[dash + 1 : command]
    given = _file(b"".join(os.fsencode(argument) + b"\0" for argument in arguments))
    environment = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    os.execve(program, ["bwrap", "--args", str(given), *rest[command:]], environment)  # noqa: S606


if __name__ == "__main__":
    main()
