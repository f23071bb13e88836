"""Sampled pass@1 of a policy in this process: whole batches of episodes with the real tools, no server."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers import LlamaForCausalLM

from pipeline.corpora.world import World
from pipeline.grading.grader import RIGHT, grade
from rl.env import Env
from rl.formats import TurnFormat
from rl.tooling import local_tools
from schemas.episode import Limits
from schemas.task import Task


@dataclass
class Score:
    """Counts over tasks, whole and per stratum; a stratum maps to (right, n)."""

    right: int = 0
    n: int = 0
    strata: dict[str, tuple[int, int]] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def count(self, stratum: str, right: bool, stop: str) -> None:
        self.right += right
        self.n += 1
        before = self.strata.get(stratum, (0, 0))
        self.strata[stratum] = (before[0] + right, before[1] + 1)
        self.stops[stop] += 1

    @property
    def rate(self) -> float:
        return self.right / self.n if self.n else 0.0


def pass_at_1(
    model: LlamaForCausalLM,
    format: TurnFormat,
    world: World,
    tasks: Sequence[Task],
    *,
    seed: int,
    limits: Limits,
    greedy: bool = False,
    batch: int = 64,
) -> Score:
    """One sampled attempt a task, at temperature 1."""
    torch.manual_seed(seed)
    score = Score()
    model.train(False)
    for start in range(0, len(tasks), batch):
        asyncio.run(_attempt(model, format, world, tasks[start : start + batch], limits, greedy, score))
    model.train()
    return score


async def _attempt(
    model: LlamaForCausalLM,
    format: TurnFormat,
    world: World,
    tasks: Sequence[Task],
    limits: Limits,
    greedy: bool,
    score: Score,
) -> None:
    """All tasks of a batch at once, a turn of each at a time."""
    tools = local_tools(world)
    running = []
    for task in tasks:
        env = Env(tools, format, limits)
        env.reset(task)
        running.append((task, env))
    while running:
        turns = sample_turns(model, [env.prompt for _, env in running], format.end, limits, greedy)
        still = []
        for (task, env), turn in zip(running, turns, strict=True):
            seen = await env.step(turn)
            if not seen.done:
                still.append((task, env))
                continue
            await env.close()
            right = seen.answer is not None and grade(task.answer, seen.answer) == RIGHT
            score.count(task.stratum, right, str(seen.stop))
        running = still
    await tools.close()


@torch.inference_mode()
def sample_turns(
    model: LlamaForCausalLM, prompts: Sequence[tuple[int, ...]], end: int, limits: Limits, greedy: bool
) -> list[list[int]]:
    """A turn for each prompt, up to and with `end` or cut at the token limit. Prompts are padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.full((len(prompts), longest), end, dtype=torch.long)
    seen = torch.zeros(len(prompts), longest, dtype=torch.long)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) :] = torch.tensor(prompt)
        seen[i, longest - len(prompt) :] = 1
    out = model.generate(  # type: ignore[misc]
        input_ids=ids,
        attention_mask=seen,
        do_sample=not greedy,
        temperature=None if greedy else 1.0,
        top_k=None if greedy else 0,
        top_p=None if greedy else 1.0,
        max_new_tokens=limits.max_tokens,
        eos_token_id=end,
        pad_token_id=end,
    )
    turns = []
    for row in out[:, longest:].tolist():
        turns.append(row[: row.index(end) + 1] if end in row else row)
    return turns
