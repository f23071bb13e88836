"""What a chat model is asked, arm by arm."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pipeline.families.math.prompts import DIRECT_TOKENS, REASONING_TOKENS
from pipeline.families.math.prompts import messages as math
from schemas.task import Task

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Chat:
    """How an arm asks. `max_tokens` leaves room for an answer of the kind asked for; `stop` ends it earlier."""

    messages: Callable[[Task], list[Message]]
    max_tokens: int
    stop: tuple[str, ...] = ()


_EXAMPLES = (
    ("Which currency is the currency of Japan?", "yen"),
    ("Name the chemical element whose symbol is Au.", "gold"),
    ("Which country borders Spain and has Lisbon as its capital?", "Portugal"),
)


def closed_book(task: Task) -> list[Message]:
    """A few-shot request for a bare name, as a model of this size otherwise talks about the question."""
    shown = [
        message
        for question, answer in _EXAMPLES
        for message in ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
    ]
    instruction = {"role": "system", "content": "Answer with the name only."}
    return [instruction, *shown, {"role": "user", "content": task.question}]


CHATS: dict[str, Chat] = {
    "closed_book": Chat(closed_book, max_tokens=32, stop=("\n",)),
    "no_reasoning": Chat(partial(math, reasoning=False), max_tokens=DIRECT_TOKENS, stop=("\n",)),
    "reasoning": Chat(partial(math, reasoning=True), max_tokens=REASONING_TOKENS),
}
"""By arm."""
