"""The whole chain on a real server: what a rollout records is what the model did."""

import asyncio
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from infra.client import ModelClient
from infra.engine import EngineOptions, serve
from infra.models import LocalModel
from rl.env import Env, Limits
from rl.rollout import rollout
from rl.tools import world_tools
from schemas.trajectory import StopReason, Trajectory
from tests.rl.test_env import task
from tests.rl.tiny import FORMAT, byte_tokenizer
from tests.worlds import toy_world


def write_policy(folder: Path) -> LocalModel:
    """A random model that often ends its turn, so that some attempts have a second one."""
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), bos_token="<|bos|>", eos_token="<|end|>")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.1,
        tie_word_embeddings=False,
        eos_token_id=FORMAT.end,
        bos_token_id=tokenizer.bos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return LocalModel("tiny", folder, "r1")


@torch.inference_mode()
def logprobs_of(model: LlamaForCausalLM, trajectory: Trajectory) -> list[float]:
    """The model's log-probability of every sampled token, from one pass over the rendered episode."""
    ids, mask = FORMAT.render(task().question, trajectory.turns)
    logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(logprobs[i - 1, ids[i]]) for i in range(1, len(ids)) if mask[i]]


@pytest.mark.engine
async def test_recorded_log_probabilities_are_the_model_s_own_over_the_rendered_episode(tmp_path: Path) -> None:
    policy = write_policy(tmp_path / "tiny")
    model = LlamaForCausalLM.from_pretrained(policy.path, dtype=torch.float32)
    limits = Limits(max_tokens=64, context=512, shown_errors=2)
    with serve(policy, cache=tmp_path, options=EngineOptions(threads=1)) as endpoint:
        async with ModelClient(endpoint, None) as client:
            tools = world_tools(toy_world())

            async def attempt(seed: int) -> Trajectory:
                env = Env(tools, FORMAT, limits)
                return await rollout(task("search"), seed, env=env, client=client, solver="tiny@r1", version="r1")

            found = await asyncio.gather(*(attempt(seed) for seed in range(24)))
    assert {t.stop for t in found} <= {StopReason.MAX_TOKENS, StopReason.FORMAT, StopReason.CONTEXT_OVERFLOW}
    ended = [turn for t in found for turn in t.turns if turn.output_ids[-1] == FORMAT.end]
    assert max(len(t.turns) for t in found) > 1 and ended
    assert len({t.turns[0].output_ids for t in found}) > 20  # each attempt has its own seed
    for trajectory in found:
        recorded = [value for turn in trajectory.turns for value in turn.logprobs]
        assert recorded == pytest.approx(logprobs_of(model, trajectory), abs=1e-3)
