import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sequential import (
    Band,
    Sprt,
    beta_interval,
    characteristic,
    curtailed,
    pass_all_k,
    pass_at_k,
    wave,
    wilson,
)
from schemas.config import KeepBand, SequentialTest

SPRT = Sprt(SequentialTest())


@st.composite
def bands(draw: st.DrawFn) -> KeepBand:
    n = draw(st.integers(1, 24))
    low = draw(st.integers(0, n))
    return KeepBand(n=n, low=low, high=draw(st.integers(low, n)))


@settings(deadline=None)
@given(bands(), st.data())
def test_curtailment_gives_the_verdict_of_all_samples(band: KeepBand, data: st.DataObject) -> None:
    samples = data.draw(st.lists(st.booleans(), min_size=band.n, max_size=band.n))
    full = "keep" if band.low <= sum(samples) <= band.high else "drop"
    for n in range(band.n + 1):
        assert curtailed(n, sum(samples[:n]), band) in {None, full}
    assert curtailed(band.n, sum(samples), band) == full


@settings(deadline=None)
@given(bands(), st.data())
def test_waves_never_pass_the_full_number_of_samples_and_always_end(band: KeepBand, data: st.DataObject) -> None:
    rule, n, s = Band(band), 0, 0
    while size := wave(rule, n, s):
        s += sum(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
        n += size
    assert n <= band.n
    assert rule.verdict(n, s) is not None


def test_waves_of_the_ratio_test_end_on_the_tenth_failure() -> None:
    """2 + 2 + 4 + 2 = 10: doubling to 8 would overshoot the bound by 6."""
    assert [wave(SPRT, n, 0) for n in (0, 2, 4, 8, 10)] == [2, 2, 4, 2, 0]


def test_one_right_and_one_wrong_keep_a_task_in_1_to_7_of_8() -> None:
    band = KeepBand(n=8, low=1, high=7)
    assert curtailed(2, 1, band) == "keep"
    assert [curtailed(n, 0, band) for n in range(9)] == [None] * 8 + ["drop"]
    assert [curtailed(n, n, band) for n in range(9)] == [None] * 8 + ["drop"]


def test_a_band_names_the_side_it_was_missed_on() -> None:
    rule = Band(KeepBand(n=8, low=1, high=7))
    assert rule.verdict(8, 0) == "too_hard"
    assert rule.verdict(8, 8) == "too_easy"


def test_waves_of_8_are_2_2_4_while_nothing_is_right() -> None:
    rule = Band(KeepBand(n=8, low=1, high=7))
    assert [wave(rule, 0, 0), wave(rule, 2, 0), wave(rule, 4, 0), wave(rule, 8, 0)] == [2, 2, 4, 0]


@pytest.mark.parametrize(("p", "alone", "in_waves"), [(0, 8, 8), (0.1, 5.81, 6.26), (0.2, 4.41, 5.0), (0.5, 2.98, 3.5)])
def test_mean_samples_of_1_to_7_of_8(p: float, alone: float, in_waves: float) -> None:
    """At p = 1/2 one by one: 2 + sum over m = 3..8 of P(first m-1 alike) = 2 + (1/2 + 1/4 + ... + 1/64) = 2.98."""
    rule = Band(KeepBand(n=8, low=1, high=7))
    assert characteristic(rule, p, waves=False)[1] == pytest.approx(alone, abs=0.005)
    assert characteristic(rule, p)[1] == pytest.approx(in_waves, abs=0.005)


def test_keep_probability_is_what_all_eight_samples_give() -> None:
    """1 - .98^8 - .02^8 = .149: the keep rule lets one in seven of the near-impossible tasks pass."""
    verdicts, _ = characteristic(Band(KeepBand(n=8, low=1, high=7)), 0.02)
    assert verdicts["keep"] == pytest.approx(1 - 0.98**8 - 0.02**8)


@pytest.mark.parametrize(
    ("p", "below", "mean"),
    [(0, 1.00, 10.0), (0.05, 0.94, 14.1), (0.10, 0.71, 17.3), (0.20, 0.22, 15.4), (0.30, 0.04, 10.0), (0.50, 0.001, 4.7), (0.80, 0, 2.5)],
)  # fmt: skip
def test_sprt_accepts_and_costs_what_the_exact_table_says(p: float, below: float, mean: float) -> None:
    """Looked at after every sample and cut off at 32, where an open test does not accept."""
    verdicts, samples = characteristic(SPRT, p, waves=False)
    assert verdicts.get("below", 0) == pytest.approx(below, abs=0.006)
    assert samples == pytest.approx(mean, abs=0.05)


@pytest.mark.parametrize(
    ("p", "below", "above", "mean"),
    [(0, 1.0, 0, 10.0), (0.05, 0.946, 0.023, 14.24), (0.1, 0.709, 0.142, 18.01), (0.2, 0.216, 0.630, 17.85), (0.3, 0.044, 0.924, 12.66)],
)  # fmt: skip
def test_sprt_in_waves_accepts_alike_and_costs_little_more(p: float, below: float, above: float, mean: float) -> None:
    verdicts, samples = characteristic(SPRT, p)
    assert verdicts.get("below", 0) == pytest.approx(below, abs=0.0006)
    assert verdicts.get("above", 0) == pytest.approx(above, abs=0.0006)
    assert samples == pytest.approx(mean, abs=0.005)


def test_sprt_steps_and_bounds() -> None:
    """ln(.70/.95) = -.305 a failure, ln 6 = 1.79 a success, stop at +-ln 19 = 2.944: ten failures, or two successes."""
    assert SPRT.log_ratio(1, 0) == pytest.approx(-0.3054, abs=1e-4)
    assert SPRT.log_ratio(1, 1) == pytest.approx(math.log(6))
    assert [SPRT.verdict(n, 0) for n in (9, 10)] == [None, "below"]
    assert SPRT.verdict(2, 2) == "above"
    assert SPRT.verdict(32, 5) == "open"


def test_verdicts_are_a_distribution() -> None:
    for rule in (SPRT, Band(KeepBand(n=12, low=2, high=9))):
        for p in (0.0, 0.07, 0.5, 1.0):
            assert sum(characteristic(rule, p)[0].values()) == pytest.approx(1)


def test_pass_at_k_is_unbiased() -> None:
    """E[1 - C(n-c,k)/C(n,k)] over c ~ Binomial(8, .3) is 1 - .7^3 exactly; 1 - (1 - c/n)^k would be lower."""
    n, k, p = 8, 3, 0.3
    weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    assert sum(w * pass_at_k(n, c, k) for c, w in enumerate(weights)) == pytest.approx(1 - 0.7**3)
    assert sum(w * pass_all_k(n, c, k) for c, w in enumerate(weights)) == pytest.approx(0.3**3)
    assert sum(w * (1 - (1 - c / n) ** k) for c, w in enumerate(weights)) < 1 - 0.7**3 - 0.03
    assert pass_at_k(8, 6, 3) == 1.0


@pytest.mark.parametrize(
    ("n", "s", "low", "high"),
    [(8, 0, 0, 0.324), (8, 1, 0.022, 0.471), (8, 4, 0.215, 0.785), (8, 7, 0.529, 0.978), (16, 0, 0, 0.194), (16, 15, 0.717, 0.989)],
)  # fmt: skip
def test_wilson_interval(n: int, s: int, low: float, high: float) -> None:
    assert wilson(n, s) == pytest.approx((low, high), abs=0.0006)


def test_beta_interval_of_one_sided_cases_has_a_closed_form() -> None:
    """Beta(1, b) has distribution function 1 - (1-x)^b, so its q-quantile is 1 - (1-q)^(1/b)."""
    assert beta_interval(1, 9) == pytest.approx((1 - 0.975 ** (1 / 9), 1 - 0.025 ** (1 / 9)), abs=1e-8)
    low, high = beta_interval(4.5, 4.5)
    assert low + high == pytest.approx(1)
