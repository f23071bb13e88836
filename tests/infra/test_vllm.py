"""What a served model gives is what the model does, and its server comes and goes cleanly."""

import asyncio
import time
from pathlib import Path

import psutil
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from infra.client import Completion, ModelClient
from infra.endpoint import ContextOverflow, Endpoint, EngineDied, Unauthorized, attach
from infra.engine import EngineOptions, serve
from infra.models import LocalModel

pytestmark = pytest.mark.engine

PROMPT = [256, 72, 101, 108, 108, 111]


@torch.inference_mode()
def logprobs_by_torch(model: LocalModel, said: Completion, temperature: float) -> list[float]:
    """Log-probability of every sampled token under the weights on disk."""
    weights = AutoModelForCausalLM.from_pretrained(model.path, dtype=torch.float32)
    ids = torch.tensor([[*PROMPT, *said.token_ids]])
    logprobs = (weights(ids).logits[0, len(PROMPT) - 1 : -1] / temperature).log_softmax(-1)
    return [float(row[token]) for row, token in zip(logprobs, said.token_ids, strict=True)]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
async def test_log_probabilities_are_the_model_s_own_after_temperature(
    temperature: float, tiny_endpoint: Endpoint, tiny_model: LocalModel
) -> None:
    async with ModelClient(tiny_endpoint, None) as client:
        said = [client.complete(PROMPT, max_tokens=40, seed=seed, temperature=temperature) for seed in range(4)]
        for completion in await asyncio.gather(*said):
            expected = logprobs_by_torch(tiny_model, completion, temperature)
            assert completion.logprobs == pytest.approx(expected, abs=1e-4)


async def test_every_seed_is_another_sample_and_a_seed_is_the_same_one_in_any_company(tiny_endpoint: Endpoint) -> None:
    async with ModelClient(tiny_endpoint, None) as client:
        together = await asyncio.gather(*(client.complete(PROMPT, max_tokens=24, seed=seed) for seed in range(16)))
        assert len({said.token_ids for said in together}) == 16
        assert (await client.complete(PROMPT, max_tokens=24, seed=3)).token_ids == together[3].token_ids


async def test_the_server_sees_the_very_ids_it_is_sent_with_and_without_a_bos(tiny_endpoint: Endpoint) -> None:
    async with ModelClient(tiny_endpoint, None) as client:
        for prompt in (PROMPT, [72, 101], [256, *PROMPT, 256]):
            assert (await client.complete(prompt, max_tokens=1, seed=0)).prompt_tokens == len(prompt)


async def test_a_chat_starts_with_one_bos_where_both_template_and_tokenizer_write_one(
    tiny_endpoint: Endpoint, tiny_model: LocalModel
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model.path)
    assert tokenizer("Hi").input_ids[0] == tokenizer.bos_token_id
    text = "<|bos|><|user|>Hi<|end|><|assistant|>"
    async with ModelClient(tiny_endpoint, None) as client:
        said = await client.chat([{"role": "user", "content": "Hi"}], max_tokens=1, seed=0)
    assert said.prompt_tokens == len(tokenizer(text, add_special_tokens=False).input_ids) == 6


async def test_a_stop_token_ends_the_ids_and_is_not_in_the_text(tiny_endpoint: Endpoint) -> None:
    async with ModelClient(tiny_endpoint, None) as client:
        free = await client.complete(PROMPT, max_tokens=12, seed=1)
        stopper = free.token_ids[5]
        said = await client.complete(PROMPT, max_tokens=12, seed=1, stop_token_ids=[stopper])
    end = free.token_ids.index(stopper)
    assert said.token_ids == free.token_ids[: end + 1] and said.finish == "stop"
    assert free.finish == "length" and free.completion_tokens == 12


async def test_a_prompt_beyond_the_context_is_an_overflow(tiny_endpoint: Endpoint) -> None:
    assert tiny_endpoint.max_model_len == 512
    async with ModelClient(tiny_endpoint, None) as client:
        with pytest.raises(ContextOverflow, match="maximum context length is 512"):
            await client.complete([5] * 600, max_tokens=1, seed=0)


async def test_more_prompts_than_one_step_takes_are_served_with_their_seeds(tiny_endpoint: Endpoint) -> None:
    prompts = [[256, *[72 + i] * 480] for i in range(24)]  # 24 * 481 tokens: more than a step's 2,048 or 8,192
    async with ModelClient(tiny_endpoint, None) as client:
        said = await asyncio.gather(*(client.complete(p, max_tokens=4, seed=7) for p in prompts))
    assert [completion.prompt_tokens for completion in said] == [481] * 24


def test_the_server_can_be_attached_to_with_its_key_only(tiny_endpoint: Endpoint) -> None:
    attached = attach(tiny_endpoint.url, "tiny", tiny_endpoint.api_key)
    assert (attached.vllm, attached.max_model_len) == (True, 512)
    with pytest.raises(Unauthorized):
        attach(tiny_endpoint.url, "tiny")


@pytest.mark.slow
async def test_a_server_killed_in_use_is_reported_at_once_and_leaves_no_process(
    tiny_model: LocalModel, tmp_path: Path
) -> None:
    before = set(psutil.Process().children(recursive=True))
    with serve(tiny_model, cache=tmp_path, options=EngineOptions(threads=1)) as endpoint:
        family = set(psutil.Process().children(recursive=True)) - before
        core = next(p for p in family if "EngineCore" in p.name() or "EngineCore" in " ".join(p.cmdline()))
        async with ModelClient(endpoint, None) as client:
            calls = [client.complete(PROMPT, max_tokens=500, seed=seed) for seed in range(64)]
            running = asyncio.gather(*calls, return_exceptions=True)
            await asyncio.sleep(0.5)
            core.kill()
            killed = time.monotonic()
            results = await running
            assert time.monotonic() - killed < 60
        assert any(isinstance(result, EngineDied) for result in results)
        assert all(isinstance(result, Completion | EngineDied) for result in results)
    assert psutil.wait_procs(family, timeout=0)[1] == []
