"""The whole chain on a real server: what a rollout records is what the model did."""

import asyncio

import pytest
import torch
from transformers import LlamaForCausalLM

from infra.client import ModelClient
from infra.endpoint import Endpoint
from infra.models import LocalModel
from rl.env import Env
from rl.rollout import ServedSampler, rollout
from rl.tooling import local_tools
from schemas.episode import Limits
from schemas.trajectory import StopReason, Trajectory
from tests.rl.test_env import task
from tests.rl.tiny import FORMAT, rendered
from tests.worlds import toy_world

ATTEMPTS = 32


@torch.inference_mode()
def logprobs_by_torch(model: LlamaForCausalLM, trajectory: Trajectory) -> list[float]:
    """The model's log-probability of every sampled token, from one pass over the rendered episode."""
    ids, mask = rendered(task().question, trajectory.turns)
    logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(logprobs[i - 1, ids[i]]) for i in range(1, len(ids)) if mask[i]]


@pytest.mark.engine
async def test_recorded_log_probabilities_are_the_model_s_own_over_the_rendered_episode(
    tiny_endpoint: Endpoint, tiny_model: LocalModel
) -> None:
    tools, limits = local_tools(toy_world()), Limits(max_tokens=100, context=512, shown_errors=2)

    async def attempt(client: ModelClient, seed: int) -> Trajectory:
        env = Env(tools, FORMAT, limits)
        return await rollout(task("search"), seed, env=env, sampler=ServedSampler(client, "r1"), solver="tiny")

    async with ModelClient(tiny_endpoint, None) as client:
        found = await asyncio.gather(*(attempt(client, seed) for seed in range(ATTEMPTS)))
    assert {t.stop for t in found} <= {StopReason.MAX_TOKENS, StopReason.FORMAT, StopReason.CONTEXT_OVERFLOW}
    assert any(len(t.turns) > 1 for t in found)
    assert all(t.turns[0].output_ids[-1] == FORMAT.end for t in found if len(t.turns) > 1)
    assert len({t.turns[0].output_ids for t in found}) == ATTEMPTS
    model = LlamaForCausalLM.from_pretrained(tiny_model.path, dtype=torch.float32)
    for trajectory in found:
        recorded = [value for turn in trajectory.turns for value in turn.logprobs]
        assert recorded == pytest.approx(logprobs_by_torch(model, trajectory), abs=1e-4)
