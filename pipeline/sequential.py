"""When to stop sampling: pure rules over counts, with what they cost and how often they err.

A rule looks at `n` graded samples of which `s` are right, at the end of each wave, and either decides or says how many
samples to draw next. Waves depend on the counts alone, so equal samples give equal waves whatever order they finish in.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Literal, Protocol

import mpmath  # type: ignore[import-untyped]

from schemas.config import KeepBand, SequentialTest

TOO_HARD, TOO_EASY = "too_hard", "too_easy"
"""Below and above a keep band."""
Z95 = 1.959963984540054
"""Standard deviations of a normal 95 % interval."""


class Rule(Hashable, Protocol):
    """A verdict on `s` right of `n` graded samples; `None` while open. Every path of samples ends in a verdict."""

    def verdict(self, n: int, s: int) -> str | None: ...


def curtailed(n: int, s: int, band: KeepBand) -> Literal["keep", "drop"] | None:
    """The verdict that `band` gives after all of its samples, as soon as the missing ones cannot change it."""
    missing = band.n - n
    if s > band.high or s + missing < band.low:
        return "drop"
    if s >= band.low and s + missing <= band.high:
        return "keep"
    return None


@dataclass(frozen=True, slots=True)
class Band:
    """Lossless curtailment of a keep band: `keep`, `too_hard` or `too_easy`, always as the full `n` samples would say."""

    band: KeepBand

    def verdict(self, n: int, s: int) -> str | None:
        match curtailed(n, s, self.band):
            case "drop":
                return TOO_EASY if s > self.band.high else TOO_HARD
            case verdict:
                return verdict


@dataclass(frozen=True, slots=True)
class Sprt:
    """Wald's sequential probability ratio test: `below` accepts p <= p0, `above` accepts p >= p1.

    `open` is what `limit` samples could not tell. (A. Wald, Sequential Tests of Statistical Hypotheses, 1945.)
    """

    test: SequentialTest

    def log_ratio(self, n: int, s: int) -> float:
        """Log-likelihood of p1 over that of p0."""
        p0, p1 = self.test.p0, self.test.p1
        return s * math.log(p1 / p0) + (n - s) * math.log((1 - p1) / (1 - p0))

    def verdict(self, n: int, s: int) -> str | None:
        ratio = self.log_ratio(n, s)
        if ratio >= math.log((1 - self.test.beta) / self.test.alpha):
            return "above"
        if ratio <= math.log(self.test.beta / (1 - self.test.alpha)):
            return "below"
        return "open" if n >= self.test.limit else None


@dataclass(frozen=True, slots=True)
class Fixed:
    """Exactly `n` samples, all at once."""

    n: int

    def verdict(self, n: int, s: int) -> str | None:
        return "done" if n >= self.n else None


@cache
def wave(rule: Rule, n: int, s: int) -> int:
    """How many samples to draw at once after `s` right of `n`; 0 once decided.

    At least as many as any decision needs, so nothing is wasted. Beyond that waves double, to keep an engine full, but stop
    where a decision falls if samples go on as most of them went so far.
    """
    if rule.verdict(n, s) is not None:
        return 0
    fewest = next(m for m in count(1) if any(rule.verdict(n + m, s + right) for right in range(m + 1)))
    right_again = 1 if 2 * s > n else 0
    straight = next(m for m in count(1) if rule.verdict(n + m, s + m * right_again))
    return max(fewest, min(n, straight))


def characteristic(rule: Rule, p: float, waves: bool = True) -> tuple[dict[str, float], float]:
    """Probability of each verdict and mean number of samples drawn when a sample is right with probability `p`. Exact.

    `waves=False` looks after every sample, as the textbook rule does.
    """
    verdicts: dict[str, float] = {}
    mean = 0.0
    states = {(0, 0): 1.0}
    while states:
        following: dict[tuple[int, int], float] = {}
        for (n, s), weight in states.items():
            if (verdict := rule.verdict(n, s)) is not None:
                verdicts[verdict] = verdicts.get(verdict, 0.0) + weight
                mean += weight * n
                continue
            size = wave(rule, n, s) if waves else 1
            for right in range(size + 1):
                chance = weight * math.comb(size, right) * p**right * (1 - p) ** (size - right)
                if chance > 0:
                    following[n + size, s + right] = following.get((n + size, s + right), 0.0) + chance
        states = following
    return verdicts, mean


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that one of `k` samples is right, from `c` right of `n` (arXiv 2107.03374). Needs k <= n."""
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_all_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that all of `k` samples are right, from `c` right of `n`. Needs k <= n."""
    return math.comb(c, k) / math.comb(n, k)


def wilson(n: float, s: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a rate; 95 % by default, 0..1 without samples. An effective `n` need not be whole."""
    if n == 0:
        return 0.0, 1.0
    rate, spread = s / n, z * z / n
    centre = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(rate * (1 - rate) * spread + spread * spread / 4) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


@cache
def beta_interval(a: float, b: float, level: float = 0.95) -> tuple[float, float]:
    """Equal-tailed interval of Beta(a, b), to 1e-9."""
    tail = (1 - level) / 2
    return _beta_quantile(a, b, tail), _beta_quantile(a, b, 1 - tail)


def _beta_quantile(a: float, b: float, q: float) -> float:
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        below = float(mpmath.betainc(a, b, 0, middle, regularized=True)) < q
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2
