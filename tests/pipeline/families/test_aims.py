"""A family that is asked for strata makes those, in their shares, and every candidate by itself."""

from collections import Counter

import pytest
from pydantic import ValidationError

from pipeline.families import FamilyError, generator, made_again
from pipeline.families.aims import Aimed, Shares, asked_for
from pipeline.families.base import Generator, Miss
from pipeline.families.hard_search import HardSearch
from pipeline.families.math import Math
from schemas.config import Aim, CurateConfig, HardSearchConfig, MathConfig
from schemas.task import Task
from tests.worlds import toy_world


def aims(weights: dict[str, float]) -> list[Aim]:
    return [Aim(stratum=stratum, weight=weight) for stratum, weight in weights.items()]


@pytest.fixture(scope="module", params=["hard_search", "math"])
def family(request: pytest.FixtureRequest) -> Generator:
    if request.param == "math":
        return Math(MathConfig())
    return HardSearch(toy_world(), HardSearchConfig(types=("country", "capital city")))


def test_a_family_makes_the_strata_that_it_says_it_can_be_asked_for(family: Generator) -> None:
    assert len(family.strata) > 5 and list(family.strata) == sorted(set(family.strata))
    for stratum in family.strata:
        made = [family.at(3, index, stratum) for index in range(4)]
        tasks = [task for task in made if isinstance(task, Task)]
        assert tasks and {task.stratum for task in tasks} == {stratum}
        assert all(stratum in miss.reason or "/" in miss.reason for miss in made if isinstance(miss, Miss))


def test_what_it_makes_of_its_own_accord_is_mostly_of_those(family: Generator) -> None:
    made = [task for index in range(100) if isinstance(task := family(3, index), Task)]
    assert sum(task.stratum in family.strata for task in made) > 0.95 * len(made)


def test_shares_hold_in_any_stretch_of_indices(family: Generator) -> None:
    first, second, third = family.strata[:3]
    shares = Shares(aims({first: 0.5, second: 0.375, third: 0.125}))
    for start in (0, 1000, 123_456):
        counts = Counter(shares.of(7, index).stratum for index in range(start, start + 200))
        assert counts[first] == pytest.approx(100, abs=4)
        assert counts[second] == pytest.approx(75, abs=4)
        assert counts[third] == pytest.approx(25, abs=4)
    assert [shares.of(7, i) for i in range(50)] != [shares.of(8, i) for i in range(50)]


def test_a_candidate_alone_is_the_candidate_of_the_batch(family: Generator) -> None:
    aimed = Aimed(family, aims(dict.fromkeys(family.strata, 1 / len(family.strata))))
    assert [aimed(5, index) for index in (3, 1)] == [aimed(5, index) for index in range(4)][3:0:-2]


def test_nothing_is_asked_of_a_stratum_without_a_share(family: Generator) -> None:
    first, second = family.strata[:2]
    shares = Shares(aims({first: 0.0, second: 1.0}))
    assert {shares.of(0, index).stratum for index in range(500)} == {second}


def test_a_config_aims(family: Generator) -> None:
    world, stratum = toy_world(), family.strata[0]
    settings = {"family": family.family, "aims": [{"stratum": stratum, "weight": 2.0}]}
    if family.family == "hard_search":
        settings["hard_search"] = {"types": ["country", "capital city"]}
    make = generator(CurateConfig.model_validate(settings), world)
    made, plain = make(4, 9), family.at(4, 9, stratum)
    assert isinstance(made, Task) and isinstance(plain, Task)
    asked = {**plain.lineage.knobs, "aim": {"stratum": stratum, "level": 0.0}}
    assert made == plain.model_copy(update={"lineage": plain.lineage.model_copy(update={"knobs": asked})})


def test_a_level_chooses_the_harder_or_the_easier_of_several_and_the_lineage_makes_it_again(family: Generator) -> None:
    stratum = family.strata[0]
    hardness: dict[float, list[float]] = {}
    for level in (-1.0, -0.5, 0.0, 1.0):
        made = [asked_for(family, 4, index, Aim(stratum=stratum, level=level)) for index in range(20)]
        tasks = [task for task in made if isinstance(task, Task)]
        assert {task.stratum for task in tasks} == {stratum}
        world = toy_world() if family.family == "hard_search" else None
        assert [made_again(task.lineage, world) for task in tasks[:3]] == tasks[:3]
        hardness[level] = [family.hardness(task) for task in tasks]
    means = [sum(found) / len(found) for found in hardness.values()]
    assert means == sorted(means) and means[0] < means[-1]


def test_aims_that_nothing_can_be_made_of_are_refused() -> None:
    with pytest.raises(FamilyError, match=r"aims=math/99: math makes no such stratum; it makes math/"):
        generator(CurateConfig(family="math", aims=(Aim(stratum="math/99"),)), None)
    for weights in ([0.0], [-1.0], [float("nan")], [1.0, 1.0]):
        with pytest.raises(ValidationError, match="aims"):
            CurateConfig.model_validate(
                {"family": "math", "aims": [{"stratum": "math/1", "weight": weight} for weight in weights]}
            )
