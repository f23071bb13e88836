import pytest

from pipeline.families.math.admission import objections
from pipeline.families.math.templates.gym import ADMITTED, Dataset


@pytest.mark.parametrize("dataset", ADMITTED, ids=lambda d: d.name)
def test_an_admitted_dataset_draws_equal_items_and_pays_no_junk(dataset: Dataset) -> None:
    assert objections(dataset.name, dataset.config) == []


def test_a_scorer_that_pays_any_string_is_refused() -> None:
    assert any("pays 'banana'" in reason for reason in objections("game_of_life_halting", {}, items=20))


def test_a_dataset_whose_answers_can_be_guessed_is_refused() -> None:
    assert any(
        "one answer is right" in reason for reason in objections("count_bits", {"min_n": 1, "max_n": 999}, items=60)
    )


def test_a_dataset_that_hangs_is_refused_at_its_deadline() -> None:
    assert objections("chain_sum", {}, items=1_000_000, seconds=4) == ["too slow or hangs"]
