r"""Qwen3 (hybrid thinking).

    opening       <|im_start|>system\n# Tools ... <|im_end|>\n<|im_start|>user\nquestion<|im_end|>\n<|im_start|>assistant\n
    sampled       <think>\nreason\n</think>\n\n<tool_call>\n{"name": "open", "arguments": {"id": "Niger"}}\n</tool_call><|im_end|>
               or <think>\nreason\n</think>\n\nNiger<|im_end|>
    observation   \n<|im_start|>user\n<tool_response>\ntext\n</tool_response><|im_end|>\n<|im_start|>assistant\n

Thoughts and calls are read from ids. The family's template drops thoughts from before the user's last message; history
that only grows keeps them, so after a `request` the two differ where a policy thinks.
"""

import json
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer

from infra.tools.base import Schema, ToolSpec
from rl.formats.base import BlockStyle, Ids, asked, described, pairs
from rl.tokens import Answer, BrokenFormat, Codec, FormatKind, Markup, ToolCalls, read_call, read_json, write_call

CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>", *pairs(("think", "tool_call", "tool_response")))
_ASSISTANT = Markup("<|im_start|>assistant\n")
_TOOLS = (
    Markup(
        "<|im_start|>system\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
    ),
    Markup(
        "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
        '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
        "</tool_call><|im_end|>\n"
    ),
)


class Qwen3(BlockStyle):
    known_by = ("<|im_start|>",)
    blocks = ("think", "tool_call")

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(Codec(tokenizer, CONTROL_TOKENS), ("<|im_end|>",))

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        before, after = _TOOLS
        lines = [f"\n{json.dumps(described(tool), ensure_ascii=False)}" for tool in tools]
        system = (before, *lines, after) if tools else ()
        return self.codec.join(*system, *_user(asked(question, memory)), _ASSISTANT)

    def observation(self, results: Sequence[str]) -> Ids:
        return self.codec.join(*_shown(results), _ASSISTANT)

    def request(self, results: Sequence[str], text: str) -> Ids:
        return self.codec.join(*_shown(results), *_user(text), _ASSISTANT)

    def turn(self, step: ToolCalls | Answer) -> Ids:
        # An answer always has its block, an empty one where there was nothing to think about.
        thinks = bool(step.thought) or isinstance(step, Answer)
        parts = [Markup("<think>\n"), step.thought.strip("\n"), Markup("\n</think>\n\n")] if thinks else []
        if isinstance(step, Answer):
            return self.codec.join(*parts, step.text, Markup("<|im_end|>"))
        for i, call in enumerate(step.calls):
            parts += [Markup("\n<tool_call>\n" if i else "<tool_call>\n"), write_call(call), Markup("\n</tool_call>")]
        return self.codec.join(*parts, Markup("<|im_end|>"))

    def _step(self, parts: list[str], tools: Mapping[str, Schema]) -> ToolCalls | Answer:
        thought, blocks = self._read(parts)
        thought = thought.strip("\n")
        said = blocks.pop(0)[1].strip() if blocks and not blocks[0][0] else ""
        if not blocks and not said:
            raise BrokenFormat(FormatKind.EMPTY_ANSWER)
        if not blocks:
            return Answer(said, thought)
        if any(not name for name, _ in blocks):
            raise BrokenFormat(FormatKind.TEXT_OUTSIDE)
        calls = tuple(read_call(read_json(text), tools) for _, text in blocks)
        return ToolCalls(calls, "\n\n".join(filter(None, (thought, said))))


def _user(text: str) -> list[str]:
    return [Markup("<|im_start|>user\n"), text, Markup("<|im_end|>\n")]


def _shown(results: Sequence[str]) -> list[str]:
    """The line end after a sampled turn, and the results as one message."""
    if not results:
        return [Markup("\n")]
    spans = [
        part for result in results for part in (Markup("\n<tool_response>\n"), result, Markup("\n</tool_response>"))
    ]
    return [Markup("\n<|im_start|>user"), *spans, Markup("<|im_end|>\n")]
