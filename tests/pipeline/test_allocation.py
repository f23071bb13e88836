"""What is given out adds up, and goes where it is worth most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.allocation import filled, largest_remainder


def test_the_best_get_the_cap_until_all_is_spent():
    assert filled(np.array([[1.0, 4.0, 3.0, 2.0]]), 0.9, 0.4).tolist() == pytest.approx([0.0, 0.4, 0.4, 0.1])


def test_what_draws_disagree_on_is_shared():
    assert filled(np.array([[2.0, 1.0], [1.0, 2.0]]), 1.0, 0.6).tolist() == pytest.approx(
        [0.5, 0.5]
    )  # .6 and .4, each once


def test_too_few_for_the_cap_share_all_of_it_alike():
    assert filled(np.array([[5.0, 1.0]]), 1.0, 0.3).tolist() == [0.5, 0.5]


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=12).filter(lambda shares: sum(shares) > 0), st.integers(0, 5000)
)
def test_whole_units_add_up_and_none_is_a_unit_off(shares, units):
    whole = largest_remainder(shares, units)
    assert sum(whole) == units
    assert all(abs(part - share / sum(shares) * units) < 1 for part, share in zip(whole, shares, strict=True))


def test_remainders_go_to_the_largest():
    assert largest_remainder([1, 1, 1], 10) == [4, 3, 3]  # 3.33 each; the first of equal ones
    assert largest_remainder([0.5, 0.3, 0.2], 7) == [4, 2, 1]  # 3.5, 2.1, 1.4


def test_nothing_cannot_be_shared_in_proportion_to():
    with pytest.raises(ValueError, match="nothing to share"):
        largest_remainder([0.0, 0.0], 5)
