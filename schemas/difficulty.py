"""How hard a task is, for whom: counts, never a bare rate."""

from pydantic import Field, model_validator

from schemas.base import Record


class Difficulty(Record):
    """`correct` of `n` samples by one solver in one arm (`tools`, `closed_book`, `no_reasoning`, `without_<tool>`).

    `truncated` samples ran into a token limit and count as wrong; `undecided` ones could not be graded and are outside `n`.
    `pass_rate ~ Beta(prior_a + correct, prior_b + n - correct)`.
    """

    solver: str
    arm: str
    n: int = Field(ge=0)
    correct: int = Field(ge=0)
    truncated: int = Field(default=0, ge=0)
    undecided: int = Field(default=0, ge=0)
    prior_a: float = 0.5
    prior_b: float = 0.5
    seeds: tuple[int, ...] = ()
    """The seed of every sample drawn, undecided ones included."""

    @model_validator(mode="after")
    def _counts_close(self) -> "Difficulty":
        if self.correct + self.truncated > self.n:
            raise ValueError(f"correct={self.correct} + truncated={self.truncated} exceed n={self.n}")
        return self

    @property
    def posterior_mean(self) -> float:
        return (self.prior_a + self.correct) / (self.prior_a + self.prior_b + self.n)
