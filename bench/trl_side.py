"""TRL's GRPO trainer on tokens it is given: one training step a line. Runs among TRL's packages and imports nothing of ours.

`python -m bench.trl_side ROWS MODEL MICRO_BATCH`. Everything after sampling is TRL's own: padding of the generated batch,
shuffling, micro-batches, loss with its entropy metric, backward, clipping, AdamW. Only sampling and scoring are left out.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset  # type: ignore[import-untyped]
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer  # type: ignore[import-not-found]
from trl.trainer.utils import pad  # type: ignore[import-not-found]


class GivenTokens(GRPOTrainer):  # type: ignore[misc]
    """Trains on `given` instead of sampling, in the form in which TRL hands on what its tool loop sampled."""

    given: dict[str, Any]

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        rows = self.given["rows"]
        prompts = [torch.tensor(row["ids"][: row["prompt"]]) for row in rows]
        completions = [torch.tensor(row["ids"][row["prompt"] :]) for row in rows]
        sampled = [torch.tensor(row["targets"][row["prompt"] :]) for row in rows]
        logprobs = [torch.tensor(row["logprobs"][row["prompt"] :]) for row in rows]
        tool_mask = pad(sampled, padding_value=1, padding_side="right")
        completion_mask = pad([torch.ones_like(ids) for ids in completions], padding_value=0, padding_side="right")
        return {
            "prompt_ids": pad(prompts, padding_value=self.processing_class.pad_token_id, padding_side="left"),
            "prompt_mask": pad([torch.ones_like(ids) for ids in prompts], padding_value=0, padding_side="left"),
            "completion_ids": pad(completions, padding_value=self.processing_class.pad_token_id, padding_side="right"),
            "completion_mask": completion_mask,
            "tool_mask": tool_mask,
            "old_per_token_logps": pad(logprobs, padding_value=0.0, padding_side="right"),
            "advantages": torch.tensor([row["advantage"] for row in rows]),
            "num_items_in_batch": (completion_mask * tool_mask).sum(),
        }


class OnDemand(TrainerCallback):
    """Begins a step when a line comes, and answers it with the step's seconds; the batch of the next one is not waited for."""

    def on_step_begin(self, *args: Any, **more: Any) -> None:
        if not sys.stdin.readline():
            sys.exit()
        self.began, self.cpu = time.perf_counter(), time.process_time()

    def on_step_end(self, *args: Any, **more: Any) -> None:
        seconds, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu
        print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)


def main(rows: str, model: str, micro: str) -> None:
    torch.set_num_threads(1)
    given = json.loads(Path(rows).read_text("utf-8"))
    count = len(given["rows"])
    with TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=int(micro),
            gradient_accumulation_steps=count // int(micro),
            num_generations=given["group"],
            max_steps=1000,
            learning_rate=given["rate"],
            lr_scheduler_type="constant",
            adam_beta1=given["betas"][0],
            adam_beta2=given["betas"][1],
            weight_decay=0.0,
            max_grad_norm=1.0,
            loss_type="cispo",
            epsilon_high=2.0,
            beta=0.0,
            temperature=1.0,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            dataloader_pin_memory=False,
            model_init_kwargs={"dtype": torch.float32, "attn_implementation": "sdpa"},
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = GivenTokens(
            model=model,
            reward_funcs=lambda completions, **more: [0.0] * len(completions),
            args=config,
            train_dataset=Dataset.from_dict({"prompt": ["given"] * count}),
            processing_class=AutoTokenizer.from_pretrained(model),
            callbacks=[OnDemand()],
        )
        trainer.given = given
        trainer.train()


if __name__ == "__main__":
    main(*sys.argv[1:])
