"""What a tree of processes takes. Resource limits are per process and per user, a session is several processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """`resident` counts pages that several processes share once for each; `threads` are those of all processes."""

    pids: tuple[int, ...]
    resident: int
    threads: int

    def memory(self) -> int:
        """Bytes, shared pages counted once: too slow to ask without need."""
        total = 0
        for pid in self.pids:
            try:
                with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                    total += next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                return self.resident
        return total


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


def usage(roots: Sequence[int]) -> Usage:
    """Of these processes and all below them. Those that come or go meanwhile may be missed."""
    resident = threads = 0
    seen: list[int] = []
    left = list(roots)
    while left:
        pid = left.pop()
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                resident += int(file.read().split()[1]) * _PAGE
            threads += len(os.listdir(f"/proc/{pid}/task"))
        except (FileNotFoundError, ProcessLookupError):
            continue
        seen.append(pid)
        left += children(pid)
    return Usage(tuple(seen), resident, threads)
