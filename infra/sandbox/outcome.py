"""How a call ended."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    OK = "ok"
    ERROR = "error"
    """The code raised: its traceback is in the output, and what it changed before stays changed."""
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    PROCESS_LIMIT = "process_limit"
    OUTPUT_LIMIT = "output_limit"
    CRASHED = "crashed"

    @property
    def kept(self) -> bool:
        """Whether the session's state is that after the call; otherwise it is that before it."""
        return self in (Outcome.OK, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Ran:
    """`output`: what was written, then what the last expression is. `restored`: the session was made again before the call, and
    its calls of the numbers `changed`, from 1, then gave another output than before.
    """

    output: str
    outcome: Outcome
    restored: bool = False
    changed: tuple[int, ...] = ()


def cut(text: str, characters: int) -> str:
    """The text, or its start and its end with what is missing between said."""
    if len(text) <= characters:
        return text
    head, tail = characters * 2 // 3, characters - characters * 2 // 3
    return f"{text[:head]}\n[{len(text) - characters:,} characters cut]\n{text[-tail:]}"
