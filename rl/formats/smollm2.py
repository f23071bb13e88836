r"""SmolLM2-Instruct: ChatML, with calls as text.

    opening       <|im_start|>system\n... <|im_end|>\n<|im_start|>user\nquestion<|im_end|>\n<|im_start|>assistant\n
    sampled       reason\n<tool_call>[{"name": "open", "arguments": {"id": "Niger"}}]</tool_call><|im_end|>
               or Niger<|im_end|>
    observation   \n<|im_start|>tool\ntext<|im_end|>\n<|im_start|>assistant\n

The family's template knows no tools: they are described in the system message that its models were trained to call
functions with. What stands before a call is the thought; an answer has none, as all of its text is the answer.
"""

import json
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer

from infra.tools.base import Schema, ToolSpec
from rl.formats.base import Ids, Style, asked, described, self_written
from rl.tokens import Answer, BrokenFormat, Codec, FormatKind, Markup, ToolCalls, mark, read_call, read_json

CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>")
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
_TOOLS = """\
You are an expert in composing functions. You are given a question and a set of possible functions. 
Based on the question, you will need to make one or more function/tool calls to achieve the purpose. 
If none of the functions can be used, point it out and refuse to answer. 
If the given question lacks the parameters required by the function, also point it out.

You have access to the following tools:
<tools>{tools}</tools>

The output MUST strictly adhere to the following format, and NO other text MUST be included.
The example format is as follows. Please make sure the parameter type is correct. If no function call is needed, please \
make the tool calls an empty list '[]'.
<tool_call>[
{{"name": "func_name1", "arguments": {{"argument1": "value1", "argument2": "value2"}}}},
... (more tool calls as required)
]</tool_call>"""
_CALL, _CALLED = "<tool_call>", "</tool_call>"


class SmolLM2(Style):
    known_by = ("<|im_start|>", "<repo_name>")

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(Codec(tokenizer, CONTROL_TOKENS), ("<|im_end|>",))

    def opening(self, question: str, tools: Sequence[ToolSpec], memory: str = "") -> Ids:
        said = (*_message("system", system(tools)), *_message("user", asked(question, memory)))
        return self.codec.join(*said, Markup("<|im_start|>assistant\n"))

    def observation(self, results: Sequence[str]) -> Ids:
        return self.codec.join(*_shown(results), Markup("<|im_start|>assistant\n"))

    def request(self, results: Sequence[str], text: str) -> Ids:
        return self.codec.join(*_shown(results), *_message("user", text), Markup("<|im_start|>assistant\n"))

    def turn(self, step: ToolCalls | Answer) -> Ids:
        return self.codec.join(written(step), Markup("<|im_end|>"))

    def _step(self, parts: list[str], tools: Mapping[str, Schema]) -> ToolCalls | Answer:
        text = self._plain(parts)
        thought, opened, rest = text.partition(_CALL)
        if not opened and not text:
            raise BrokenFormat(FormatKind.EMPTY_ANSWER)
        if not opened:
            return Answer(text)
        # The last one: an argument may spell it.
        body, closed, after = rest.rpartition(_CALLED)
        if not closed:
            raise BrokenFormat(FormatKind.UNCLOSED)
        if after.strip():
            raise BrokenFormat(FormatKind.TEXT_OUTSIDE)
        calls = read_json(body)
        if not isinstance(calls, list):
            raise BrokenFormat(FormatKind.INVALID_CALL)
        if not calls:
            raise BrokenFormat(FormatKind.NO_ACTION)
        return ToolCalls(tuple(read_call(call, tools) for call in calls), thought.strip())

    def _said(self, parts: list[str]) -> str:
        text = self._plain(parts)
        if _CALL in text:
            raise BrokenFormat(FormatKind.MISPLACED)
        return text

    def _plain(self, parts: list[str]) -> str:
        if self_written(parts, "<|im_start|>", "tool"):
            raise BrokenFormat(FormatKind.SELF_WRITTEN_RESPONSE)
        if any(map(mark, parts)):
            raise BrokenFormat(FormatKind.MISPLACED)
        return "".join(parts).strip()


def system(tools: Sequence[ToolSpec]) -> str:
    """What the system message says."""
    if not tools:
        return SYSTEM
    return _TOOLS.format(tools=json.dumps([described(tool) for tool in tools], ensure_ascii=False))


def written(step: ToolCalls | Answer) -> str:
    """The text of a turn."""
    if isinstance(step, Answer):
        return step.text
    calls = [{"name": call.name, "arguments": call.arguments} for call in step.calls]
    thought = f"{step.thought}\n" if step.thought else ""
    return f"{thought}{_CALL}{json.dumps(calls, ensure_ascii=False)}{_CALLED}"


def _message(role: str, text: str) -> list[str]:
    return [Markup(f"<|im_start|>{role}\n"), text, Markup("<|im_end|>\n")]


def _shown(results: Sequence[str]) -> list[str]:
    """The line end after a sampled turn, and the results, a message each."""
    return [Markup("\n"), *(part for result in results for part in _message("tool", result))]
