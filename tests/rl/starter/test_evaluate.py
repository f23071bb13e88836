"""Sampling whole batches of episodes: ends, padding, counts."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rl.formats import TurnFormat
from rl.starter.evaluate import pass_at_1, sample_turns
from rl.starter.model import ModelConfig, new_model
from schemas.episode import Limits
from schemas.task import Task
from tests.worlds import toy_world

LIMITS = Limits(max_turns=2, max_tokens=8, context=512)


@pytest.fixture(scope="module")
def model(toy_tokenizer: Path) -> LlamaForCausalLM:
    config = ModelConfig(hidden=32, layers=2, heads=2, inner=64, context=512)
    return new_model(config, PreTrainedTokenizerFast.from_pretrained(toy_tokenizer), seed=0)


def test_a_turn_does_not_depend_on_the_prompts_it_is_sampled_with(
    model: LlamaForCausalLM, toy_format: TurnFormat
) -> None:
    prompts = [toy_format.opening(q, ()) for q in ("Niger?", "Which country borders Niger, Chad and Sudan?", "x")]
    together = sample_turns(model, prompts, toy_format.end, LIMITS, greedy=True)
    assert together == [sample_turns(model, [p], toy_format.end, LIMITS, greedy=True)[0] for p in prompts]


def test_a_turn_ends_with_its_end_or_at_the_limit(model: LlamaForCausalLM, toy_format: TurnFormat) -> None:
    torch.manual_seed(0)
    for turn in sample_turns(model, [toy_format.opening("Niger?", ())] * 200, toy_format.end, LIMITS, greedy=False):
        assert toy_format.end not in turn[:-1]
        assert turn[-1] == toy_format.end or len(turn) == 8


def test_every_task_is_counted_once_and_equal_seeds_give_equal_scores(
    model: LlamaForCausalLM, toy_format: TurnFormat, toy_tasks: list[Task]
) -> None:
    one, two = (pass_at_1(model, toy_format, toy_world(), toy_tasks, seed=1, limits=LIMITS, batch=7) for _ in range(2))
    assert one == two
    assert one.n == len(toy_tasks) == sum(one.stops.values()) == sum(n for _, n in one.strata.values())
