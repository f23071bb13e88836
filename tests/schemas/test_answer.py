"""A gold that could not be graded is refused when it is made."""

import sys

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.answer import AnswerSpec, CollectionAnswer, DateAnswer, EntityAnswer, NumberAnswer, is_day
from schemas.config import describe_errors

SPEC: TypeAdapter[AnswerSpec] = TypeAdapter(AnswerSpec)


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ({"kind": "date", "value": "2020-99-99"}, "2020-99-99: is no day of the calendar"),
        ({"kind": "date", "value": "2023-02-29"}, "is no day of the calendar"),
        ({"kind": "date", "value": "-0043-02-29"}, "is no day of the calendar"),
        ({"kind": "date", "value": "12 March 1987"}, "String should match"),
        ({"kind": "collection", "shape": "interval", "items": ["1"]}, "items=1: an interval has two ends"),
        ({"kind": "collection", "shape": "interval", "items": []}, "items=0: an interval has two ends"),
        ({"kind": "number", "value": "1/0"}, "'1/0': is no exact number"),
        ({"kind": "number", "value": "1e3"}, "'1e3': is no exact number"),
        ({"kind": "number", "value": "1_000"}, "is no exact number"),
        ({"kind": "number", "value": "٤٢"}, "is no exact number"),
        ({"kind": "number", "value": " 3 "}, "is no exact number"),
        ({"kind": "number", "value": "nan"}, "is no exact number"),
        ({"kind": "number", "value": "9" * 4201}, "is no exact number"),
        ({"kind": "entity", "entity": "x", "name": " "}, "String should match"),
        ({"kind": "text", "value": " "}, "String should match"),
        ({"kind": "text", "value": "..._\u200d"}, "String should match"),
        ({"kind": "code", "entry": "a b", "cases": [["[]", "1"]]}, "entry='a b': is no name of a function"),
        ({"kind": "code", "entry": "lambda", "cases": [["[]", "1"]]}, "entry='lambda': is no name of a function"),
        ({"kind": "code", "entry": "f", "cases": []}, "at least 1 item"),
        ({"kind": "code", "entry": "f", "cases": [["[1]", "one"]]}, "is no JSON"),
        ({"kind": "code", "entry": "f", "cases": [["1", "1"]]}, "arguments=1: are no list"),
        ({"kind": "code", "entry": "f", "cases": [["[1]", "1"], ["[ 1 ]", "2"]]}, "two have the same arguments"),
    ],
)
def test_a_gold_that_means_nothing_is_refused_in_one_line(gold: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SPEC.validate_python(gold)
    described = describe_errors(caught.value)
    assert reason in described and "\n" not in described


def test_golds_at_the_edge_are_accepted() -> None:
    assert DateAnswer(value="2024-02-29") and DateAnswer(value="0000-02-29") and DateAnswer(value="-0004-02-29")
    assert NumberAnswer(value="-7/3") and NumberAnswer(value="0.50") and NumberAnswer(value="9" * 4200)
    assert CollectionAnswer(shape="interval", items=("-oo", "oo")) and CollectionAnswer(shape="set", items=())
    assert EntityAnswer(entity="", name="1984")


def test_the_longest_number_is_one_that_python_reads() -> None:
    assert sys.int_info.default_max_str_digits >= 4200


def test_the_calendar_repeats_every_400_years() -> None:
    assert [year for year in (1600, 1700, 1900, 2000, 2023, 2024, 0, -4, -100) if is_day(year, 2, 29)] == [
        1600,
        2000,
        2024,
        0,
        -4,
    ]
