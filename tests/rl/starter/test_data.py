"""Episodes to imitate are real episodes, and the same each time."""

import random
from collections import Counter

import numpy as np

from pipeline.families.hard_search.oracle import GIVEN_UP
from rl.formats import TurnFormat
from rl.starter.data import draw_flaw, drills, episodes, first_turn, hard_tasks, lookups
from rl.starter.sft import Episode
from schemas.answer import EntityAnswer
from schemas.config import HardSearchConfig
from schemas.episode import Limits
from schemas.task import Task
from tests.worlds import toy_world

WORLD = toy_world()


def made(format: TurnFormat, tasks: list[Task], **flaws: float) -> list[Episode]:
    return episodes(WORLD, tasks, format, Limits(max_tokens=64), flaws, seed=3)  # type: ignore[arg-type]


def test_equal_seeds_make_equal_episodes(toy_format: TurnFormat, toy_tasks: list[Task]) -> None:
    one, two = (made(toy_format, toy_tasks, wrong_candidate=0.3) for _ in range(2))
    assert [e.ids.tolist() for e in one] == [e.ids.tolist() for e in two]


def test_loss_is_on_what_the_policy_writes_and_on_nothing_it_is_shown(
    toy_format: TurnFormat, toy_tasks: list[Task]
) -> None:
    for episode in made(toy_format, toy_tasks):
        written = toy_format.decode(episode.ids[episode.mask].tolist())
        shown = toy_format.decode(episode.ids[~episode.mask].tolist())
        assert "tool_response" not in written and "tool_call" not in shown
        assert written.endswith("</answer><|end|>")


def test_an_unflawed_script_that_ends_wrong_is_not_imitated(toy_format: TurnFormat, toy_tasks: list[Task]) -> None:
    golds = Counter(t.answer.name for t in toy_tasks if isinstance(t.answer, EntityAnswer))
    kept = made(toy_format, toy_tasks)
    answers = Counter(toy_format.decode(e.ids.tolist()).split("<answer>")[1].split("</answer>")[0] for e in kept)
    assert 10 <= len(kept) <= len(toy_tasks)
    assert not {name for name in answers if answers[name] > golds[name] + golds[f"the {name}"]}


def test_a_flaw_with_share_1_is_in_every_episode(toy_format: TurnFormat, toy_tasks: list[Task]) -> None:
    flawed = made(toy_format, toy_tasks, gives_up=1.0)
    assert len(flawed) == len(toy_tasks)
    assert all(f"<answer>{GIVEN_UP}</answer>" in toy_format.decode(e.ids.tolist()) for e in flawed)


def test_flaws_come_in_their_shares() -> None:
    rng = random.Random(0)
    drawn = Counter(draw_flaw(rng, {"gives_up": 0.1, "unknown_tool": 0.2}) for _ in range(4000))
    assert np.allclose([drawn["gives_up"], drawn["unknown_tool"], drawn[None]], [400, 800, 2800], atol=90)


def test_a_lookup_asks_one_fact_that_has_one_answer() -> None:
    tasks = lookups(WORLD, WORLD.types, 0, 30)
    assert len(tasks) == 30
    for task in tasks:
        assert isinstance(task.answer, EntityAnswer)
        assert WORLD.certain(task.constraints) == {task.answer.entity}  # type: ignore[arg-type]


def test_asking_for_more_tasks_changes_none_of_the_first() -> None:
    config = HardSearchConfig(types=("country",))
    few, more = hard_tasks(WORLD, config, 0, 5), hard_tasks(WORLD, config, 0, 8)
    assert more[:5] == few


def test_a_drill_is_names_and_the_search_that_repeats_them(toy_format: TurnFormat) -> None:
    for drill in drills(["Niger", "Mali", *(f"name {i}" for i in range(9))], toy_format, 0, 20):
        text = toy_format.decode(drill.ids.tolist())
        query = text.split('"queries": ["')[1].split('"')[0]
        assert [query.count(name) for name in ("Niger", "Mali")] == [
            text.count(name) // 2 for name in ("Niger", "Mali")
        ]
        assert toy_format.decode(drill.ids[drill.mask].tolist()).startswith("<tool_call>")


def test_a_first_turn_is_cut_before_anything_is_shown(toy_format: TurnFormat, toy_tasks: list[Task]) -> None:
    for episode in made(toy_format, toy_tasks):
        text = toy_format.decode(first_turn(episode).ids.tolist())
        assert text.endswith("</tool_call><|end|>") and "<tool_response>" not in text
