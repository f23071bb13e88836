"""A tokenizer small enough to build in a test: one id a byte, whatever the text."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from rl.tokens import CONTROL_TOKENS, TurnFormat


def byte_tokenizer(control: tuple[str, ...] = CONTROL_TOKENS) -> Tokenizer:
    """Adds a BOS of its own accord when asked for special tokens, as many chat tokenizers do."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(control))
    bos = tokenizer.token_to_id("<|bos|>")
    if bos is not None:
        tokenizer.post_processor = processors.TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", bos)])
    return tokenizer


_TOKENIZER = byte_tokenizer()
FORMAT = TurnFormat(_TOKENIZER)


def sampled(text: str) -> tuple[int, ...]:
    """Ids of a turn in which every spelled control token *is* that token: what a policy could sample, flaws included."""
    return tuple(_TOKENIZER.encode(text, add_special_tokens=False).ids)
