"""The committed policy: whole, described by its card, and good enough to begin with."""

import asyncio
import json
import re

import pytest
from transformers import LlamaForCausalLM

from infra.client import ModelClient
from infra.engine import EngineOptions, serve
from infra.models import resolve
from infra.settings import ASSETS, Settings
from pipeline.grading.grader import RIGHT, grade
from rl.policy import Policy
from rl.solvers import AgentSolver
from rl.starter.build import BuildConfig
from rl.starter.data import TOOLS, hard_tasks
from rl.starter.model import weights_hash
from rl.tooling import open_tools
from schemas.config import HardSearchConfig
from schemas.episode import ToolOptions
from schemas.task import Task
from tests.worlds import atlas

STARTER = ASSETS / "starter"
HELD_OUT = 777
"""A seed that no episode was made with; the real atlas was never trained on either."""


def test_weights_are_those_the_card_describes() -> None:
    card = (STARTER / "README.md").read_text("utf-8")
    assert f"sha256: {weights_hash(STARTER)}" in card
    assert (STARTER / "model.safetensors").stat().st_size <= 32 * 2**20


def test_the_model_and_its_tokenizer_agree() -> None:
    model = LlamaForCausalLM.from_pretrained(STARTER)
    policy = Policy.load(STARTER)
    assert model.config.tie_word_embeddings is False
    assert model.config.eos_token_id == policy.format.end
    assert model.config.max_position_embeddings >= policy.limits.context
    assert 1e6 < sum(p.numel() for p in model.parameters()) < 1e7


def test_every_covered_title_is_written_with_one_token_for_its_name() -> None:
    policy = Policy.load(STARTER)
    assert policy.covers is not None and len(policy.covers) > 800
    for title in sorted(policy.covers):
        assert len(policy.format.encode(re.sub(r" \([^)]*\)$", "", title))) == 1, title


def test_the_recorded_config_is_one_that_builds() -> None:
    recorded = json.loads((STARTER / "build.json").read_text("utf-8"))
    assert BuildConfig.model_validate(recorded["config"]) == BuildConfig()


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(900)
async def test_served_it_solves_more_than_a_tenth_of_held_out_tasks(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = atlas()
    tasks = [
        t for t in hard_tasks(world, HardSearchConfig(), HELD_OUT, 100) if t.stratum.endswith(("none", "described"))
    ]
    model = resolve("starter", Settings.from_env().cache)
    right = 0
    with serve(model, cache=tmp_path_factory.mktemp("serving"), options=EngineOptions(threads=1)) as endpoint:
        async with ModelClient(endpoint, None) as client, open_tools(world, ToolOptions(), TOOLS) as opened:
            solver = AgentSolver(client, world, Policy.load(model.path), opened)

            async def attempt(task: Task) -> bool:
                answer = (await solver(task, 0)).answer
                return answer is not None and grade(task.answer, answer) == RIGHT

            right = sum(await asyncio.gather(*(attempt(task) for task in tasks[:64])))
    assert len(tasks) >= 50
    assert right > 0.10 * len(tasks[:64])
