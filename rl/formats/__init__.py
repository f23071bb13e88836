"""Turn formats, one file a family of chat templates; which one a model speaks is read off its control tokens."""

from pathlib import Path

from tokenizers import Tokenizer

from rl.formats.base import Ids, TurnFormat
from rl.formats.llama import Llama
from rl.formats.ours import Ours
from rl.formats.qwen3 import Qwen3
from rl.formats.smollm2 import SmolLM2
from rl.tokens import TokenizerError, load_tokenizer

__all__ = ["FORMATS", "Ids", "TurnFormat", "format_of", "load_format"]

FORMATS: tuple[type[Ours | Qwen3 | SmolLM2 | Llama], ...] = (Ours, SmolLM2, Qwen3, Llama)
"""In the order in which they are tried: the first whose `known_by` tokens are all there is the format."""


def format_of(tokenizer: Tokenizer) -> TurnFormat:
    """The format that a tokenizer's control tokens stand for. Raises `TokenizerError`."""
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for style in FORMATS:
        if added.issuperset(style.known_by):
            return style(tokenizer)
    known = "; ".join(f"{' '.join(style.known_by)} ({style.__name__})" for style in FORMATS)
    raise TokenizerError(f"tokenizer: has none of the control tokens we know a chat template by: {known}; give another")


def load_format(folder: Path) -> TurnFormat:
    """The format of a model folder (`tokenizer.json`). Raises `TokenizerError`."""
    return format_of(load_tokenizer(folder))
