"""An episode passes a hundred turns and two hundred pages in a small window, and without management it does not."""

import pytest

from bench.deep import WINDOW, Played, deep_tasks, play
from infra.settings import ASSETS
from pipeline.families.hard_search.explore import Explorer
from rl.formats import load_format
from rl.tooling import local_tools
from schemas.trajectory import StopReason
from tests.worlds import atlas


async def played(mode: str) -> Played:
    world = atlas()
    (task,) = deep_tasks(world, count=1)
    return await play(mode, task, Explorer(world), local_tools(world), load_format(ASSETS / "starter"))


@pytest.mark.parametrize("mode", ["drop", "summarise"])
async def test_a_managed_episode_reads_everything_and_still_knows_what_it_found(mode: str) -> None:
    it = await played(mode)
    assert it.turns >= 100 and it.pages >= 200 and it.searches >= 70
    assert it.right and it.remembers
    assert max(turn.prompt_tokens + len(turn.output_ids) for turn in it.trajectory.turns) <= WINDOW


async def test_the_same_without_management_ends_where_the_window_does() -> None:
    it = await played("off")
    assert it.trajectory.stop is StopReason.CONTEXT_OVERFLOW
    assert it.turns < 100 / 3
