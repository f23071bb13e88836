"""A policy of a few thousand parameters, and rows for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rl.learn.learner import Learner, TrainerSetup
from rl.learn.records import Batch, Row
from schemas.training import LossOptions, OptimiserOptions
from tests.rl.tiny import byte_tokenizer


def write_policy(folder: Path, *, hidden: int = 32, tied: bool = False) -> Path:
    """A random Llama over bytes, with tokenizer and `build.json`."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), bos_token="<|bos|>", eos_token="<|end|>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.2,
        tie_word_embeddings=tied,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "build.json").write_text("{}", "utf-8")
    return folder


def setup(
    policy: Path, weights: Path, *, clip: float = 2.0, temperature: float = 1.0, **optimiser: Any
) -> TrainerSetup:
    options = OptimiserOptions(**{"threads": 1, "rate": 1e-3, **optimiser})
    return TrainerSetup(str(policy), str(weights), options, LossOptions(clip=clip), temperature)


def row(ids: Sequence[int], first: int, advantage: float, *, share: float = 1.0, logprob: float = -5.0) -> Row:
    """A row whose tokens from `first` on were sampled."""
    n, targets = len(ids), np.arange(len(ids)) >= first
    return Row(
        uid="g/0",
        ids=np.array(ids, dtype=np.int64),
        targets=targets,
        advantages=np.where(targets, advantage, 0).astype(np.float32),
        logprobs=np.where(targets, logprob, 0).astype(np.float32),
        versions=np.zeros(n, dtype=np.int64),
        share=share,
    )


def batch(*rows: Row) -> Batch:
    return Batch(rows=rows, trained=("g/0",), dropped={})


def mixed(seed: int = 0, rows: int = 12) -> Batch:
    """Rows of 5 to 60 tokens, half of them targets, of either sign."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 60, rows)
    return batch(
        *(row(rng.integers(0, 200, n).tolist(), n // 2, rng.normal(), share=1 / rows / (n - n // 2)) for n in lengths)
    )


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in learner.model.state_dict().items()}


def gradients(learner: Learner) -> dict[str, torch.Tensor]:
    """Those of the first step, clipped: AdamW's first moment is a tenth of them."""
    return {name: 10 * learner.optimiser.state[p]["exp_avg"] for name, p in learner.model.named_parameters()}


def apart(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The largest difference between equally named tensors."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def moved(learner: Learner, found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`found`, after one step, without those weights whose gradient was next to 0.

    AdamW divides a gradient by its own size, so where it is rounding alone the weight moves by as much as anywhere.
    """
    return {name: found[name] * (gradient.abs() > 1e-5) for name, gradient in gradients(learner).items()}


def read(folder: str | Path) -> dict[str, torch.Tensor]:
    return dict(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict())
