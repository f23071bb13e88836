"""Does the trainer work on this GPU, and how fast: 50 steps of a 135 M model in packed bfloat16, and its parity with float32.

python -m rl.gpu_check
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rl.learn.learner import Learner, TrainerSetup
from rl.learn.records import Batch, Row
from schemas.training import LossOptions, OptimiserOptions

STEPS, ROWS, LONGEST, PARITY = 50, 64, 2048, 3
PEAK_TFLOPS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "A10": 125, "4090": 165}
"""Dense bfloat16 with float32 accumulation, by what torch calls the device (vendor's data sheets)."""
SHAPE = LlamaConfig(
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)
"""Of SmolLM2-135M."""


def policy(folder: Path) -> str:
    """A model of that shape with random weights."""
    torch.manual_seed(0)
    LlamaForCausalLM(SHAPE).save_pretrained(folder)  # type: ignore[no-untyped-call]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(folder)
    return str(folder)


def rows(seed: int) -> Batch:
    """Rows of 256 to `LONGEST` tokens; a third of them, at the end, is trained on."""
    rng = np.random.default_rng(seed)
    made = []
    for i, length in enumerate(rng.integers(256, LONGEST, ROWS)):
        targets = np.arange(length) >= length - length // 3
        made.append(
            Row(
                uid=f"{i}/0",
                ids=rng.integers(0, SHAPE.vocab_size, length),
                targets=targets,
                advantages=(targets * rng.normal()).astype(np.float32),
                # Random weights are next to uniform.
                logprobs=(targets * -np.log(SHAPE.vocab_size)).astype(np.float32),
                versions=np.zeros(length, dtype=np.int64),
                share=1 / ROWS / (length // 3),
            )
        )
    return Batch(rows=tuple(made), trained=(), dropped={})


def flops(batch: Batch, parameters: int) -> float:
    """Of one step, forward and backward: 6 for each weight and token, and attention's 12 * layers * width * context, where
    a causal token sees half of its row. The head, which runs at targets alone, counts there alone."""
    lengths = np.array([len(row) for row in batch.rows], dtype=float)
    targets = sum(int(row.targets.sum()) for row in batch.rows)
    # Tied: one matrix is both a lookup, which costs nothing, and the head.
    head = SHAPE.vocab_size * SHAPE.hidden_size
    attention = 12 * SHAPE.num_hidden_layers * SHAPE.hidden_size * (lengths**2 / 2).sum()
    return float(6 * (parameters - head) * lengths.sum() + 6 * head * targets + attention)


def main() -> int:
    if not torch.cuda.is_available():
        print("gpu check: torch sees no CUDA device; run it where there is one, with the CUDA build of torch")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        options = OptimiserOptions(rate=1e-5)
        setup = TrainerSetup(policy(Path(folder) / "policy"), f"{folder}/weights", options, LossOptions(), 1.0)
        exact = Learner(setup, compute=torch.float32)
        expected = [exact.step(rows(seed)) for seed in range(PARITY)]
        del exact
        learner = Learner(setup)
        parameters = sum(p.numel() for p in learner.model.parameters())
        seen, work = [], 0.0
        for step in range(STEPS):
            batch = rows(step)
            seen.append(learner.step(batch))
            if step >= STEPS // 5:
                work += flops(batch, parameters)
        published = learner.publish(STEPS)
    timed = seen[STEPS // 5 :]
    seconds, tokens = (sum(each[f"{what}/step"] for each in timed) for what in ("seconds", "tokens"))
    name = torch.cuda.get_device_name()
    peak = next((tflops for key, tflops in PEAK_TFLOPS.items() if key in name), None)
    used = f"MFU {work / seconds / peak / 1e12:.1%} of {peak} TFLOP/s" if peak else "MFU unknown: no peak listed for it"
    print(f"{name}: {parameters / 1e6:.0f} M parameters, {STEPS} steps, {tokens / seconds:,.0f} tokens/s, {used}")
    print(f"memory: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB; published {published.sha256[:12]}")
    for step, (ours, theirs) in enumerate(zip(seen, expected, strict=False)):
        pair = [
            f"{what} {ours[key]:.6f} / {theirs[key]:.6f}"
            for what, key in (("loss", "loss/trained"), ("norm", "gradient_norm/step"))
        ]
        print(f"step {step}, bfloat16 / float32: {', '.join(pair)}")
    skipped = sum(each["skipped_steps/step"] for each in seen)
    print(f"skipped steps: {skipped:.0f}")
    return int(skipped > 0)


if __name__ == "__main__":
    sys.exit(main())
