"""The config of several rounds, and what each of them came to."""

from pydantic import Field, model_validator

from schemas.base import Options, Record
from schemas.config import LATEST, LATEST_IF_ANY, CurateConfig
from schemas.steering import SteeringOptions
from schemas.training import TrainConfig

SET_BY_ROUNDS = {
    "curate": ("seed", "held_out", "earlier", "solver", "test_share"),
    "train": ("release", "policy", "seed"),
}
"""Settings that are another one in each round, or the same in all."""


class RoundsConfig(Options):
    """Curate, train, evaluate and steer, again and again."""

    rounds: int = Field(default=2, ge=1, le=1000)
    seed: int = Field(default=0, ge=0, lt=2**31 - 2000)
    """Of the held-out tasks; round n curates with the n-th after it."""
    policy: str = "starter"
    """Where learning begins: a model folder, or a recipe."""
    steered: bool = True
    """Whether a round follows the plan that the one before it led to. The first, or all where not, are as `curate` says."""
    held_out: str | None = None
    """A release whose `test` split is held out; absent, one is made before the first round."""
    held_out_candidates: int = Field(default=200, ge=1, le=10**9)
    """Of the release that is made, if one is."""
    again: bool = True
    """Whether too hard tasks of the round before are tried again by the policy that has learned since."""
    curate: CurateConfig = CurateConfig(family="hard_search")
    """Of every round; what it holds of seeds and releases is set by the round."""
    train: TrainConfig = TrainConfig()
    """Of every round, as `curate`."""
    steering: SteeringOptions = SteeringOptions()

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> "RoundsConfig":
        for part, names in SET_BY_ROUNDS.items():
            given = getattr(self, part)
            for name in names:
                if getattr(given, name) != type(given).model_fields[name].default:
                    raise ValueError(f"{part}.{name}: is set by the rounds themselves; leave it out")
        if self.train.evaluation.release is not None:
            raise ValueError("train.evaluation.release: is set by the rounds themselves; leave it out")
        if self.train.evaluation.split != "test":
            raise ValueError(f"train.evaluation.split={self.train.evaluation.split}: `test` is held out; leave it out")
        if self.held_out is not None and "held_out_candidates" in self.model_fields_set:
            raise ValueError(f"held_out={self.held_out}: no other release is made; leave out held_out_candidates")
        if self.curate.plan in (LATEST, LATEST_IF_ANY):
            raise ValueError(
                f"curate.plan={self.curate.plan}: may be another one when the rounds go on; give its id, or leave it out"
            )
        if self.train.steps == 0:
            raise ValueError("train.steps=0: a round that trains nothing has nothing to steer by; give it at least 1")
        if self.curate.family != self.train.family:
            raise ValueError(
                f"curate.family={self.curate.family}: is curated, and train.family={self.train.family} is trained on; "
                "they are the same tasks"
            )
        return self


class Round(Record):
    """What a round came to so far: each field is filled in when its step is done."""

    number: int = Field(ge=1)
    release: str | None = None
    """Version of what was curated."""
    run: str | None = None
    """Id of the training run."""
    policy: str | None = None
    """Where the policy lies that it led to."""
    plan: str | None = None
    """Id of the plan that it led to, for the next round."""

    @model_validator(mode="after")
    def _goes_step_by_step(self) -> "Round":
        done = [self.release is not None, self.run is not None and self.policy is not None, self.plan is not None]
        if (self.run is None) != (self.policy is None) or done != sorted(done, reverse=True):
            raise ValueError("a later step is there without the one before it")
        return self
