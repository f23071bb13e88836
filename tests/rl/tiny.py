"""A tokenizer small enough to build in a test: one id a byte, whatever the text."""

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from rl.formats.base import Ids
from rl.formats.ours import CONTROL_TOKENS, Ours
from schemas.trajectory import Turn


def byte_tokenizer(control: Sequence[str] = CONTROL_TOKENS, bos: str = "<|bos|>") -> Tokenizer:
    """Adds a BOS of its own accord when asked for special tokens, as many chat tokenizers do."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(control))
    id = tokenizer.token_to_id(bos)
    if id is not None:
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, id)])
    return tokenizer


_TOKENIZER = byte_tokenizer()
FORMAT = Ours(_TOKENIZER)


def sampled(text: str) -> Ids:
    """Ids of a turn in which every spelled control token *is* that token: what a policy could sample, flaws included."""
    return tuple(_TOKENIZER.encode(text, add_special_tokens=False).ids)


def rendered(question: str, turns: Sequence[Turn]) -> tuple[Ids, Ids]:
    """Ids of a whole episode and which of them were sampled."""
    ids = list(FORMAT.opening(question, ()))
    mask = [0] * len(ids)
    for turn in turns:
        shown = () if turn.observation is None else FORMAT.observation([turn.observation])
        ids += (*turn.output_ids, *shown)
        mask += [1] * len(turn.output_ids) + [0] * len(shown)
    return tuple(ids), tuple(mask)
