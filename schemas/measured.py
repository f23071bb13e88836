"""What is measured of a training run: one record a figure, and one a kind of ending."""

from schemas.base import Record


class Metric(Record):
    """One figure of one step. `seconds` are of training since the run began, all resumptions together.

    `population` says what `value` is of; it is absent where it was no finite number.
    """

    step: int
    seconds: float
    name: str
    population: str
    value: float | None


class Failure(Record):
    """How many attempts of one stratum, at one version of the weights, ended in one way.

    `outcome` is the grader's verdict on an answer, `right`, `wrong` or `undecided`, or why there was none.
    """

    stratum: str
    version: str
    outcome: str
    n: int
    turns: float
    """Mean."""
    tokens: float
    """Mean, prompts and completions of all turns."""
