"""On a real server: what is sampled is sampled by the weights that were published, before and after an exchange."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx
import psutil
import pytest
import pytest_asyncio
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from infra.broadcast import Offer
from infra.client import Completion
from infra.engine import EngineOptions
from infra.exchange import WrongWeights, exchange, prove
from infra.models import LocalModel, resolve
from infra.weights import WEIGHTS_FILE, digest
from rl.learn.records import Weights
from rl.train.engine import VllmEngine

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PROMPT = [256, *range(65, 65 + 70)]  # two whole blocks of the prefix cache and a little more
Publish = Callable[[], Weights]


@pytest.fixture(scope="module")
def tied(tiny_model: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """A model whose head is its embeddings: a packed copy of the head is what an exchange forgets most easily."""
    folder = tmp_path_factory.mktemp("tied") / "tied"
    shutil.copytree(tiny_model.path, folder)
    torch.manual_seed(1)
    config = LlamaConfig.from_pretrained(tiny_model.path, tie_word_embeddings=True)
    LlamaForCausalLM(config).save_pretrained(folder)
    return resolve(str(folder), folder)


@pytest.fixture(scope="module")
def publish(tied: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> Publish:
    """New weights, a noisy step away from those before."""
    folders = [tied.path]

    def next_ones() -> Weights:
        model = LlamaForCausalLM.from_pretrained(folders[-1], dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.03 * torch.randn_like(parameter))
        folder = tmp_path_factory.mktemp("published") / f"v{len(folders)}"
        shutil.copytree(tied.path, folder)
        model.save_pretrained(folder)
        folders.append(folder)
        return Weights(str(folder), len(folders) - 1, digest(load_file(folder / WEIGHTS_FILE)))

    return next_ones


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tied: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VllmEngine]:
    cache = tmp_path_factory.mktemp("serving")
    made = VllmEngine(tied, cache=cache, temperature=1.0, options=EngineOptions(threads=1), timeout_s=120)
    yield made
    await made.close()


@torch.inference_mode()
def by_torch(folder: str | Path, prompt: Sequence[int], said: Completion, temperature: float) -> torch.Tensor:
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    logits = model(torch.tensor([[*prompt, *said.token_ids]])).logits[0, len(prompt) - 1 : -1]
    return (logits / temperature).log_softmax(-1)[range(len(said.token_ids)), list(said.token_ids)]


async def agrees(engine: VllmEngine, folder: str | Path, version: int) -> None:
    """Two turns of four episodes each at two temperatures, the second turn over what the cache keeps of the first."""
    for temperature in (0.6, 1.0):
        engine.temperature = temperature
        for seed in range(4):
            before = await cached(engine)
            prompt = [*PROMPT, seed]
            for _ in range(2):
                said = await engine.sample(prompt, ends=[], max_tokens=48, seed=seed)
                expected = by_torch(folder, prompt, said, temperature)
                assert said.version == str(version)
                torch.testing.assert_close(torch.tensor(said.logprobs), expected, atol=1e-4, rtol=0)
                prompt = [*prompt, *said.token_ids, 65]
            assert await cached(engine) - before >= 64


async def cached(engine: VllmEngine) -> float:
    """Prompt tokens that came from the prefix cache so far."""
    endpoint = engine.client.endpoint
    async with httpx.AsyncClient(headers=endpoint.headers) as http:
        said = (await http.get(endpoint.url.removesuffix("/v1") + "/metrics")).text
    (line,) = (line for line in said.splitlines() if line.startswith("vllm:prefix_cache_hits_total"))
    return float(line.split()[-1])


async def test_log_probabilities_are_torch_s_before_and_after_exchanges_also_over_the_prefix_cache(
    engine: VllmEngine, tied: LocalModel, publish: Publish
) -> None:
    await engine.sample(PROMPT, ends=[], max_tokens=1, seed=0)
    await agrees(engine, tied.path, 0)
    for version in (1, 2):
        weights = publish()
        await engine.swap(weights)
        await agrees(engine, weights.folder, version)


async def test_greedy_turns_after_an_exchange_are_those_of_torch_with_the_new_weights(
    engine: VllmEngine, publish: Publish
) -> None:
    weights = publish()
    await engine.swap(weights)
    engine.temperature = 0.0
    said = await engine.sample(PROMPT, ends=[], max_tokens=40, seed=0)
    model = LlamaForCausalLM.from_pretrained(weights.folder, dtype=torch.float32)
    written = model.generate(torch.tensor([PROMPT]), max_new_tokens=40, do_sample=False, eos_token_id=-1)
    assert list(said.token_ids) == written[0, len(PROMPT) :].tolist()


async def test_a_turn_that_runs_when_new_weights_come_is_whole_by_the_old_ones(
    engine: VllmEngine, publish: Publish
) -> None:
    old = publish()
    await engine.swap(old)
    engine.temperature = 1.0
    running = asyncio.ensure_future(engine.sample(PROMPT, ends=[], max_tokens=400, seed=1))
    await asyncio.sleep(0.2)
    new = publish()
    swapping = asyncio.ensure_future(engine.swap(new))
    await asyncio.sleep(0.01)
    assert not running.done(), "the turn must run when the swap is asked for"
    then = await engine.sample(PROMPT, ends=[], max_tokens=100, seed=1)
    await swapping
    before = await running
    assert (before.version, then.version) == (str(old.version), str(new.version))
    for said, weights in ((before, old), (then, new)):
        expected = by_torch(weights.folder, PROMPT, said, 1.0)
        torch.testing.assert_close(torch.tensor(said.logprobs), expected, atol=1e-4, rtol=0)


async def test_weights_that_come_over_the_network_are_those_that_were_offered(
    engine: VllmEngine, publish: Publish
) -> None:
    weights = publish()
    offer = Offer(load_file(Path(weights.folder) / WEIGHTS_FILE), "127.0.0.1")
    await engine.swap(Weights(offer.address, weights.version, weights.sha256))
    await agrees(engine, weights.folder, weights.version)
    offer.close()


async def test_a_worker_tells_weights_that_are_not_published_and_weights_it_does_not_have(
    engine: VllmEngine, publish: Publish
) -> None:
    endpoint, other = engine.client.endpoint, publish()
    with pytest.raises(WrongWeights, match=r"the tensors have sha256 \w{12}, not the published 000000000000"):
        await exchange(endpoint, other.folder, "0" * 64, "x", 60)
    with pytest.raises(WrongWeights, match=r"the model does not compute with .* and \d+ more"):
        await prove(endpoint, other.folder, other.sha256, 60)
    await engine.swap(other)
    await prove(endpoint, other.folder, other.sha256, 60)


@pytest.mark.parametrize("path", ["/collective_rpc", "/pause", "/update_weights", "/v1/completions"])
async def test_no_endpoint_answers_who_has_no_key(engine: VllmEngine, path: str) -> None:
    async with httpx.AsyncClient() as http:
        root = engine.client.endpoint.url.removesuffix("/v1")
        assert (await http.post(f"{root}{path}", json={})).status_code == 401


async def test_kill_9_of_the_server_in_a_turn_brings_the_turn_back_by_the_current_weights(
    engine: VllmEngine, publish: Publish
) -> None:
    weights = publish()
    await engine.swap(weights)
    running = asyncio.gather(*(engine.sample(PROMPT, ends=[], max_tokens=400, seed=seed) for seed in range(4)))
    await asyncio.sleep(0.3)
    family = psutil.Process().children(recursive=True)
    server = next(process for process in family if "vllm.entrypoints.openai.api_server" in process.cmdline()[1:3])
    os.kill(server.pid, signal.SIGKILL)
    for said in await running:
        expected = by_torch(weights.folder, PROMPT, said, engine.temperature)
        assert said.version == str(weights.version)
        torch.testing.assert_close(torch.tensor(said.logprobs), expected, atol=1e-4, rtol=0)
