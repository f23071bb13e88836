"""What a tree of processes takes. Resource limits are per process and per user, a session is several processes."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SOCKET, _INODE = 256 * 1024, 1024
"""Bytes of the kernel's that a full socket and a file take at most."""


@dataclass(frozen=True, slots=True)
class Usage:
    """`resident` counts pages that several processes share once for each, and any descriptor as a full socket; `threads` are
    those of all processes, `scratch` the bytes of their `/tmp`.
    """

    pids: tuple[int, ...]
    resident: int
    threads: int
    scratch: int = 0

    def memory(self) -> int:
        """Bytes, shared pages and sockets counted once: it may take seconds, so ask in a thread, and not without need."""
        total = self.scratch
        sockets: set[str] = set()
        for pid in self.pids:
            try:
                with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                    total += next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
                sockets.update(filter(lambda name: name.startswith("socket:"), _open(pid)))
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                return self.resident
        return total + len(sockets) * _SOCKET


def _open(pid: int) -> list[str]:
    names: list[str] = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return names


def states(pid: int) -> set[str]:
    """Of all threads of a process; none of one that is gone."""
    found: set[str] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                found.add(file.read().rpartition(b") ")[2][:1].decode())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def _scratch(pid: int) -> int:
    try:
        told = os.statvfs(f"/proc/{pid}/root/tmp")
    except OSError:
        return 0
    return (told.f_blocks - told.f_bfree) * told.f_frsize + (told.f_files - told.f_ffree) * _INODE


def children(pid: int) -> list[int]:
    """Of all threads of a process; none of one that is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def usage(roots: Sequence[int], private: bool = False) -> Usage:
    """Of these processes and all below them. Those that come or go meanwhile may be missed. `private`: so is their `/tmp`."""
    resident = threads = 0
    seen: list[int] = []
    left = list(roots)
    while left:
        pid = left.pop()
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                resident += int(file.read().split()[1]) * _PAGE
            threads += len(os.listdir(f"/proc/{pid}/task"))
            with contextlib.suppress(PermissionError):
                resident += len(os.listdir(f"/proc/{pid}/fd")) * _SOCKET
        except (FileNotFoundError, ProcessLookupError):
            continue
        seen.append(pid)
        left += children(pid)
    scratch = _scratch(roots[0]) if private and roots else 0
    return Usage(tuple(seen), resident + scratch, threads, scratch)
