"""Log-probabilities of the engine and of torch at equal weights: the starter, three turns an episode, prefix cache on."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from bench.figures import Figure, Row
from infra.endpoint import Endpoint
from infra.engine import EngineOptions
from infra.models import LocalModel, resolve
from infra.settings import Settings
from infra.weights import WEIGHTS_FILE, digest
from rl.formats import TurnFormat, load_format
from rl.learn.records import Weights
from rl.train.engine import VllmEngine

TITLE = ("weights", "temperature", "tokens", "from the prefix cache", "max |difference|", "mean |difference|")
EPISODES, TURNS, TOKENS = 80, 3, 24
"""A turn ends by itself, most of them long before its limit: over a thousand sampled tokens a cell."""
TEMPERATURES = (0.6, 1.0)
STEP = 3e-4
"""How far each weight moves between versions: a first step of AdamW moves every one by its rate."""


@dataclass(frozen=True)
class Said:
    prompt: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


async def measure() -> tuple[list[Row], list[Figure]]:
    """A row a cell for `TITLE`, and the figures: before a swap, after one, and after one without what makes it safe."""
    settings = Settings.from_env()
    model = resolve("starter", settings.cache)
    options = EngineOptions(threads=1, max_num_seqs=EPISODES)
    engine = VllmEngine(model, cache=settings.cache, temperature=1.0, options=options)
    rows: list[Row] = []
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for weights in (None, published(model, Path(scratch), 1)):
                if weights is not None:
                    await engine.swap(weights)
                for temperature in TEMPERATURES:
                    row, largest = await cell(engine, model.path if weights is None else weights.folder, temperature)
                    rows.append(("as they began" if weights is None else "after a swap", *row))
                    cellname = f"{'max_difference' if weights is None else 'after_swap'}_t{round(temperature * 10):02}"
                    figures.append(Figure(f"onpolicy_{cellname}", largest, "< 0.0001"))
            unsafe = published(model, Path(scratch), 2)
            assert engine.client is not None
            await only_load(engine.client.endpoint, unsafe)
            row, _ = await cell(engine, unsafe.folder, TEMPERATURES[-1])
            rows.append(("loaded without reset and salt", *row))
        finally:
            await engine.close()
    return rows, figures


async def cell(engine: VllmEngine, folder: str | Path, temperature: float) -> tuple[Row, float]:
    """Play at this temperature and compare with torch: the row without its first entry, and the largest difference."""
    engine.temperature = temperature
    await engine.sample((0,), ends=(), max_tokens=1, seed=0)  # so that a server is up
    assert engine.client is not None
    before = await cached(engine.client.endpoint)
    format = load_format(Path(folder))
    played = await asyncio.gather(*(episode(engine, format, number) for number in range(EPISODES)))
    hits = await cached(engine.client.endpoint) - before
    said = [turn for turns in played for turn in turns]
    differences = await asyncio.to_thread(compare, folder, said, temperature)
    largest = float(differences.max())
    row = (temperature, len(differences), int(hits), f"{largest:.1e}", f"{float(differences.mean()):.1e}")
    return row, largest


async def episode(engine: VllmEngine, format: TurnFormat, number: int) -> list[Said]:
    """Turns of a fixed length, each shown a page after it."""
    prompt = format.opening(f"Which country has {number} neighbours and a capital on a river?", ())
    page = "A country in Europe. It has borders with several countries. Its capital lies on a river. " * 2
    turns = []
    for turn in range(TURNS):
        said = await engine.sample(prompt, ends=(), max_tokens=TOKENS, seed=number * TURNS + turn)
        turns.append(Said(tuple(prompt), said.token_ids, said.logprobs))
        prompt = (*prompt, *said.token_ids, *format.observation([page]))
    return turns


@torch.inference_mode()
def compare(folder: str | Path, said: Sequence[Said], temperature: float) -> torch.Tensor:
    """|engine - torch| of every sampled token."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    found = []
    for turn in said:
        logits = model(torch.tensor([[*turn.prompt, *turn.ids]])).logits[0, len(turn.prompt) - 1 : -1]
        chosen = (logits / temperature).log_softmax(-1).gather(1, torch.tensor(turn.ids)[:, None])[:, 0]
        found.append((chosen - torch.tensor(turn.logprobs)).abs())
    return torch.cat(found)


def published(model: LocalModel, scratch: Path, version: int) -> Weights:
    """The model after `version` noisy steps."""
    folder = scratch / f"v{version}"
    shutil.copytree(model.path, folder)
    tensors = stepped(load_file(model.path / WEIGHTS_FILE), version)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    return Weights(str(folder), version, digest(tensors))


def stepped(tensors: Mapping[str, torch.Tensor], steps: int) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(steps)
    signs = {name: torch.randn(t.shape, generator=noise).sign() for name, t in tensors.items()}
    return {name: tensor + STEP * steps * signs[name] for name, tensor in tensors.items()}


async def only_load(endpoint: Endpoint, weights: Weights) -> None:
    """New weights under the old version and with the old keys and values: what an exchange is there to prevent."""
    call = {"method": "take_weights", "args": [weights.folder, weights.sha256]}
    async with httpx.AsyncClient(headers=endpoint.headers, timeout=60) as http:
        reply = await http.post(f"{endpoint.url.removesuffix('/v1')}/collective_rpc", json=call)
        reply.raise_for_status()


async def cached(endpoint: Endpoint) -> float:
    """Prompt tokens that the server took from its prefix cache so far."""
    async with httpx.AsyncClient(headers=endpoint.headers, timeout=60) as http:
        said = (await http.get(f"{endpoint.url.removesuffix('/v1')}/metrics")).text
    (line,) = (line for line in said.splitlines() if line.startswith("vllm:prefix_cache_hits_total"))
    return float(line.split()[-1])
