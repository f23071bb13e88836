"""The engine that the training tests sample from says what it did."""

import asyncio
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rl.formats import TurnFormat
from rl.learn.records import Weights
from rl.starter.model import ModelConfig, new_model, save_model
from tests.rl.starter.conftest import toy_format, toy_tokenizer  # noqa: F401
from tests.rl.train.torch_engine import TorchEngine


@pytest.fixture(scope="module")
def models(toy_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:  # noqa: F811
    config = ModelConfig(hidden=32, layers=2, heads=2, inner=64, context=512)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_tokenizer)
    folders = [tmp_path_factory.mktemp(f"model{seed}") for seed in range(2)]
    for seed, folder in enumerate(folders):
        save_model(new_model(config, tokenizer, seed), folder)
    return folders


async def test_log_probabilities_are_the_model_s_own(models: list[Path], toy_format: TurnFormat) -> None:  # noqa: F811
    engine = TorchEngine(models[0], temperature=0.7)
    prompts = [toy_format.opening(q, ()) for q in ("Niger?", "Which country borders Niger, Chad and Sudan?")]
    turns = await asyncio.gather(
        *(engine.sample(p, ends=toy_format.ends, max_tokens=8, seed=0) for p in prompts for _ in range(4))
    )
    assert engine.batches == [8]
    model = LlamaForCausalLM.from_pretrained(models[0])
    for prompt, turn in zip([p for p in prompts for _ in range(4)], turns, strict=True):
        ids = torch.tensor([[*prompt, *turn.token_ids]])
        with torch.inference_mode():
            logprobs = (model(ids).logits[0, len(prompt) - 1 : -1] / 0.7).log_softmax(-1)
        expected = logprobs.gather(1, ids[0, len(prompt) :, None])[:, 0]
        assert torch.allclose(torch.tensor(turn.logprobs), expected, atol=1e-5)
        assert (turn.finish == "length") == (turn.token_ids[-1] not in toy_format.ends)


async def test_a_swap_waits_for_the_turns_that_run_and_later_ones_wait_for_it(
    models: list[Path],
    toy_format: TurnFormat,  # noqa: F811
) -> None:
    engine = TorchEngine(models[0])
    prompt = toy_format.opening("Niger?", ())

    def ask(tokens: int) -> "asyncio.Future[object]":
        return asyncio.ensure_future(engine.sample(prompt, ends=(), max_tokens=tokens, seed=0))

    running = ask(200)
    while not engine.batches:
        await asyncio.sleep(0)
    swap = asyncio.ensure_future(engine.swap(Weights(str(models[1]), 1, "")))
    await asyncio.sleep(0)
    later = ask(2)
    await swap
    assert running.done() and not later.done()
    assert [(await turn).version for turn in (running, later)] == ["0", "1"]  # type: ignore[attr-defined]
    new = LlamaForCausalLM.from_pretrained(models[1])
    assert torch.equal(engine._model.model.layers[0].mlp.up_proj.weight, new.model.layers[0].mlp.up_proj.weight)
