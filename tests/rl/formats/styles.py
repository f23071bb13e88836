"""Every style over a tokenizer of bytes, beside the chat template of its family."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from transformers.utils.chat_template_utils import render_jinja_template

from infra.tools.base import Schema, ToolSpec
from rl.formats import TurnFormat, format_of, llama, ours, qwen3, smollm2
from rl.formats.base import Ids, described
from rl.formats.smollm2 import system
from rl.tokens import ToolCalls
from tests.rl.tiny import byte_tokenizer

TEMPLATES = Path(__file__).with_name("templates")
HIDDEN = {"<": "\ue000", "[": "\ue001"}
"""What every control token begins with, and a letter that stands for it while a template writes the control tokens."""
Message = dict[str, Any]

SEARCH: Schema = {
    "type": "object",
    "properties": {"queries": {"type": "array", "items": {"type": "string"}}},
    "required": ["queries"],
    "additionalProperties": False,
}
SCHEMAS = {"search": SEARCH}


@dataclass(frozen=True)
class Setup:
    """A style. `bos` is what the tokenizer begins with when asked for special tokens, "" where the template has none."""

    name: str
    control: tuple[str, ...]
    bos: str
    tokenizer: Tokenizer = field(repr=False)
    format: TurnFormat

    def sampled(self, text: str) -> Ids:
        """Ids of a text in which every spelled control token *is* that token: what a policy could sample, flaws included."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def rendered(self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, prompt: bool) -> str:
        """What the family's template makes of the whole conversation."""
        template = (TEMPLATES / f"{self.name}.jinja").read_text("utf-8").removesuffix("\n")
        if self.name == "smollm2":
            messages = [{"role": "system", "content": system(tools)}, *messages]
        texts, _ = render_jinja_template(  # type: ignore[misc]
            [list(messages)],
            tools=[dict(described(tool)) for tool in tools] or None,
            chat_template=template,
            add_generation_prompt=prompt,
            bos_token=self.bos,
        )
        # The line end after a turn is ours to show, with what comes next.
        return str(texts[0]) if prompt else str(texts[0]).removesuffix("\n")

    def one_pass(self, messages: Sequence[Message], tools: Sequence[ToolSpec], *, prompt: bool) -> Ids:
        """Ids of the whole conversation at once: control tokens where the template writes them, bytes for all that is data."""
        told = [ToolSpec(hidden(t.name), hidden(t.description), t.schema) for t in tools]
        text = self.rendered([each(hidden, m) for m in messages], told, prompt=prompt)
        return _shown(self.sampled(text), {self.sampled(hide): self.sampled(show) for show, hide in HIDDEN.items()})


def hidden(text: str) -> str:
    return text.translate(str.maketrans(HIDDEN))


def each(change: Callable[[str], str], value: Any) -> Any:
    """The value with every string in it changed, but for keys, roles and types."""
    match value:
        case str():
            return change(value)
        case dict():
            return {k: v if k in {"role", "type"} else each(change, v) for k, v in value.items()}
        case list() | tuple():
            return [each(change, item) for item in value]
    return value


def _shown(ids: Ids, letters: Mapping[Ids, Ids]) -> Ids:
    out: list[int] = []
    i = 0
    while i < len(ids):
        found = next((hide for hide in letters if ids[i : i + len(hide)] == hide), None)
        out += letters[found] if found else ids[i : i + 1]
        i += len(found) if found else 1
    return tuple(out)


def said(name: str, step: ToolCalls) -> Message:
    """The assistant's message of a turn with calls, as the family's template takes it."""
    if name == "smollm2":
        text = smollm2.written(step)
        return {"role": "assistant", "content": text}
    calls = [{"type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in step.calls]
    return {"role": "assistant", "content": "", "reasoning_content": step.thought, "tool_calls": calls}


def _setup(name: str, special: Sequence[str], added: Sequence[str], bos: str, begins_with: str) -> Setup:
    tokenizer = byte_tokenizer(special, begins_with)
    # Not one of these is special to the tokenizer; the name is no control token at all.
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in (*added, "[INST]", "<image>", "Niger")])
    return Setup(name, (*special, *added, "[INST]", "<image>"), bos, tokenizer, format_of(tokenizer))


CHATML = ("<|im_start|>", "<|im_end|>")
STYLES = {
    setup.name: setup
    for setup in (
        _setup("ours", ours.CONTROL_TOKENS, (), "<|bos|>", "<|bos|>"),
        _setup("qwen3", ("<|endoftext|>", *CHATML), qwen3.CONTROL_TOKENS[2:], "", "<|endoftext|>"),
        _setup("smollm2", ("<|endoftext|>", *CHATML, "<repo_name>"), (), "", "<|endoftext|>"),
        _setup("llama", (*llama.CONTROL_TOKENS, "<|finetune|>"), (), "<|begin_of_text|>", "<|begin_of_text|>"),
    )
}
