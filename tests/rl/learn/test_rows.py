"""From turns to rows of tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl.learn.rows import RowError, rows_of
from schemas.trajectory import Turn
from tests.rl.learn.made import turns_of


def test_the_turns_of_one_segment_make_one_row() -> None:
    """Shown 3, sampled 2, shown 1, sampled 2: ids count upwards, log-probabilities are -id / 100."""
    (row,) = rows_of("t/0", turns_of([(3, 2), (1, 2)], versions=[4, 5]), [0.5, -0.25], [True, True], 0.125)
    assert row.ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert row.targets.tolist() == [False, False, False, True, True, False, True, True]
    assert row.advantages.tolist() == [0, 0, 0, 0.5, 0.5, 0, -0.25, -0.25]
    assert row.logprobs.tolist() == pytest.approx([0, 0, 0, -0.04, -0.05, 0, -0.07, -0.08])
    assert row.versions.tolist() == [0, 0, 0, 4, 4, 0, 5, 5]
    assert (row.uid, row.share, len(row)) == ("t/0", 0.125, 8)


def test_a_rewritten_context_starts_a_row_of_its_own() -> None:
    turns = turns_of([(3, 2), (1, 1), (4, 2), (1, 1)], segments=[0, 0, 1, 1])
    rows = rows_of("t/0", turns, [1.0] * 4, [True] * 4, 1.0)
    assert [row.ids.tolist() for row in rows] == [[1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]
    assert [np.flatnonzero(row.targets).tolist() for row in rows] == [[3, 4, 6], [4, 5, 7]]


def test_an_untrained_turn_is_context_and_a_segment_of_them_is_no_row() -> None:
    turns = turns_of([(3, 2), (4, 2), (1, 1)], segments=[0, 1, 1])
    (row,) = rows_of("t/0", turns, [1.0, 1.0, 2.0], [False, False, True], 1.0)
    assert row.ids.tolist() == [6, 7, 8, 9, 10, 11, 12, 13]
    assert np.flatnonzero(row.targets).tolist() == [7]
    assert row.advantages.tolist() == [0] * 7 + [2.0]


@st.composite
def stretches(draw: st.DrawFn) -> tuple[Turn, ...]:
    lengths = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=6))
    forks = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    return turns_of(lengths, segments=[sum(forks[: i + 1]) for i in range(len(lengths))])


@settings(deadline=None)
@given(stretches(), st.data())
def test_before_every_target_stands_what_the_engine_had_and_nothing_else_is_a_target(
    turns: tuple[Turn, ...], data: st.DataObject
) -> None:
    trained = data.draw(st.lists(st.booleans(), min_size=len(turns), max_size=len(turns)))
    prefixes, context = {}, ()
    for i, turn in enumerate(turns):
        if i and turn.segment != turns[i - 1].segment:
            context = ()
        context += turn.shown_ids
        for token in turn.output_ids:
            if trained[i]:
                prefixes[token] = context
            context += (token,)
    found = {
        int(row.ids[at]): tuple(row.ids[:at].tolist())
        for row in rows_of("t/0", turns, [1.0] * len(turns), trained, 1.0)
        for at in np.flatnonzero(row.targets)
    }
    assert found == prefixes
    assert all(found.values())  # Nothing predicts a row's first token.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt_tokens": 9}, "9 tokens, but 6 are known"),
        ({"shown_ids": ()}, "6 tokens, but 5 are known"),
        ({"logprobs": ()}, "no sampled ids with log-probabilities"),
        ({"output_ids": (), "logprobs": ()}, "no sampled ids with log-probabilities"),
        ({"version": "base"}, "version='base'"),
    ],
)
def test_a_turn_that_cannot_be_trained_is_an_error_that_says_why(change: dict[str, object], said: str) -> None:
    first, second = turns_of([(3, 2), (1, 2)])
    with pytest.raises(RowError, match=said):
        rows_of("t/0", [first, second.model_copy(update=change)], [1.0, 1.0], [True, True], 1.0)


def test_a_prompt_of_no_tokens_is_an_error() -> None:
    with pytest.raises(RowError, match="after 0 tokens"):
        rows_of("t/0", turns_of([(0, 2)]), [1.0], [True], 1.0)
