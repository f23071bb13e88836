"""A word-level tokenizer for one world: a token a name, a token a frequent word, pieces and bytes for the rest.

A name is the same token wherever it stands, because the space before it is a token of its own: what is copied from a
page into a query, and from there into an answer, is copied as one id. Any text round-trips exactly.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rl.formats.ours import CONTROL_TOKENS

SCAFFOLD = ('{"name": "search", "arguments": {"queries": ["', '{"name": "open", "arguments": {"id": "', '"]}}')
"""What the JSON of every call has in common. As one token each, a turn is a dozen tokens; the text stays exact JSON."""
_PIECES = Regex(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)|\d| ?\p{L}+|\n| |[^\p{L}\d\n ]+")
"""Years, digits, words with the space before them, line ends, spaces, punctuation."""
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_ELSE = "?"


def build_tokenizer(
    names: Iterable[str], texts: Sequence[str], *, words: int, pieces: int, context: int
) -> PreTrainedTokenizerFast:
    """A tokenizer whose names are whole tokens. The `words` most frequent words of `texts` are too; `pieces` spell the others.

    `context` is the most tokens an episode may have.
    """
    added = [AddedToken(name, single_word=True, normalized=False) for name in sorted(set(names))]
    splitter = pre_tokenizers.Split(_PIECES, "isolated")
    tokenizer = Tokenizer(_word_model(_count_pieces(texts, added, splitter), words, pieces))
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens(added)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in SCAFFOLD])
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in CONTROL_TOKENS])
    roles = {"bos_token": "<|bos|>", "eos_token": "<|end|>", "pad_token": "<|end|>"}
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, model_max_length=context, clean_up_tokenization_spaces=False, **roles
    )


def _count_pieces(
    texts: Sequence[str], names: Sequence[AddedToken], splitter: pre_tokenizers.PreTokenizer
) -> Counter[str]:
    """How often each piece stands outside of names."""
    finder = Tokenizer(models.WordLevel({_ELSE: 0}, unk_token=_ELSE))
    finder.pre_tokenizer = splitter
    finder.add_tokens(list(names))
    counts: Counter[str] = Counter()
    for text, found in zip(texts, finder.encode_batch(list(texts), add_special_tokens=False), strict=True):
        spans = zip(found.ids, found.offsets, strict=True)
        counts.update(text[start:end] for id, (start, end) in spans if id == 0)
    return counts


def _word_model(counts: Counter[str], words: int, pieces: int) -> models.BPE:
    """Byte pairs learnt from the words; the most frequent words are in the vocabulary as they are, bytes spell the unseen."""
    learner = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=pieces, limit_alphabet=200, show_progress=False)
    # A word counts often, but not so often that the pieces spell only words which are whole anyway.
    learner.train_from_iterator((word for word, n in sorted(counts.items()) for _ in range(min(n, 20))), trainer)
    learnt = json.loads(learner.to_str())["model"]
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:words]
    tokens = dict.fromkeys([*_BYTES, *sorted(learnt["vocab"], key=learnt["vocab"].__getitem__), *frequent])
    return models.BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[(left, right) for left, right in learnt["merges"]],
        ignore_merges=True,
        byte_fallback=True,
    )
