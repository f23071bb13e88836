"""The family as the funnel sees it."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from pipeline.corpora.world import World
from pipeline.families.base import Miss
from pipeline.families.hard_search import HardSearch, NothingToAsk
from schemas.config import HardSearchConfig
from schemas.query import Query
from schemas.task import Task
from tests.pipeline.families.hard_search.conftest import CONFIG

FRESH = """
from pipeline.families.hard_search import HardSearch
from schemas.config import HardSearchConfig
from tests.worlds import toy_world
family = HardSearch(toy_world(), HardSearchConfig(types=("country", "capital city")))
for index in (31, 4, 90):
    print(family(7, index).model_dump_json())
"""


def test_a_fresh_process_makes_the_same_bytes(family: HardSearch) -> None:
    told = subprocess.run(
        [sys.executable, "-c", FRESH],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "random", "PYTHONPATH": "."},
    ).stdout.splitlines()
    assert told == [family(7, index).model_dump_json() for index in (31, 4, 90)]


def test_a_candidate_alone_is_the_candidate_of_the_batch(world: World, tasks: list[Task]) -> None:
    for task in tasks[::40]:
        alone = HardSearch(world, HardSearchConfig.model_validate(task.lineage.knobs))
        assert alone(task.lineage.seed, task.lineage.index) == task


def test_seeds_and_indices_make_different_questions(family: HardSearch, tasks: list[Task]) -> None:
    other = [family(8, i) for i in range(40)]
    assert len({t.task_id for t in tasks}) > 0.8 * len(tasks)
    assert [t.task_id for t in tasks[:40]] != [t.task_id for t in other if isinstance(t, Task)]


def test_few_candidates_are_missed_and_each_says_why(family: HardSearch) -> None:
    misses = [made for i in range(200) if isinstance(made := family(7, i), Miss)]
    assert len(misses) < 20
    assert all(re.fullmatch(r"\w+: .+/\w+", miss.reason) for miss in misses)


def test_every_way_to_hide_an_end_occurs_over_three_to_seven_hops(tasks: list[Task]) -> None:
    strata = [task.stratum.split("/") for task in tasks]
    assert {s[4] for s in strata} == {"none", "band", "region", "described", "mixed"}
    assert {int(s[1]) for s in strata} >= {3, 4, 5, 6}
    assert all(3 <= int(s[1]) <= 10 for s in strata)


def test_a_stratum_says_what_the_constraints_are(family: HardSearch, tasks: list[Task]) -> None:
    for task in tasks:
        query = task.constraints
        assert isinstance(query, Query)
        assert task.stratum == f"hard_search/{query.hops}/search+open/entity/{family.obfuscation(query)}"
        assert query.depth == 1 if task.stratum.endswith(("none", "band")) else query.depth == 2


def test_questions_are_plain_english(tasks: list[Task]) -> None:
    wrong = re.compile(r"  |\b(the the|a a|an an|a [aeiouAEIO]|an [^aeiouAEIOU])\b|[ ,][.,?;]|[{}]|\.\.|\bNone\b")
    for task in tasks:
        assert not wrong.search(task.question), task.question
        assert task.question[0].isupper()
        assert "name of" in task.question or task.question.startswith("Name the ")


def test_depth_one_names_every_end(world: World) -> None:
    flat = HardSearch(world, CONFIG.model_copy(update={"max_depth": 1}))
    made = [task for i in range(30) if isinstance(task := flat(0, i), Task)]
    assert made
    assert all(isinstance(t.constraints, Query) and t.constraints.depth == 1 for t in made)


def test_more_depth_nests_descriptions(world: World) -> None:
    deep = HardSearch(world, CONFIG.model_copy(update={"max_depth": 3}))
    made = [task for i in range(80) if isinstance(task := deep(0, i), Task)]
    depths = Counter(t.constraints.depth for t in made if isinstance(t.constraints, Query))
    assert depths[3] > 0 and max(depths) == 3


def test_clue_counts_are_kept(world: World) -> None:
    three = HardSearch(world, CONFIG.model_copy(update={"min_clues": 3, "max_clues": 3}))
    made = [task for i in range(20) if isinstance(task := three(0, i), Task)]
    assert made
    assert {len(t.constraints.clues) for t in made if isinstance(t.constraints, Query)} == {3}


def test_an_unknown_type_is_refused_by_name(world: World) -> None:
    with pytest.raises(NothingToAsk, match=r"types=planet: not in world toy; it has country"):
        HardSearch(world, HardSearchConfig(types=("planet",)))


def test_a_type_too_small_to_hide_an_answer_is_not_asked_about(world: World) -> None:
    """No type of the small world has 20 answers, so unless one is named there is nothing to ask."""
    with pytest.raises(NothingToAsk, match="no type has 20 entities"):
        HardSearch(world, HardSearchConfig())(0, 0)
