"""The one config tree of training. Frozen, checked once, every field read somewhere."""

from typing import Any, Literal

from pydantic import Field, model_validator

from schemas.base import Options
from schemas.episode import Limits, ToolOptions
from schemas.task import Family

Mode = Literal["sync", "partial", "async"]

_REFUSED = {
    **dict.fromkeys(
        ("top_p", "top_k", "min_p", "typical_p", "repetition_penalty"),
        "a truncating sampler draws from another distribution than the one that is trained; samples are drawn from all of it",
    ),
    **dict.fromkeys(
        ("guided_json", "guided_decoding", "structured_outputs", "enforcer", "repair"),
        "what is trained on is what the policy wrote by itself; what is no step is told to it as an error",
    ),
}
"""What others have and we must not: trajectories come wholly from the model's own distribution."""


class RolloutOptions(Options):
    """How episodes are played while a policy learns."""

    mode: Mode = "async"
    """`sync` plays a whole batch, then trains on it; `partial` trains as soon as a batch is complete and puts the rest aside
    meanwhile, each episode at its next turn; `async` goes on playing while it trains."""
    slots: int = Field(default=64, ge=1, le=100_000)
    """Episodes in flight."""
    group: int = Field(default=8, ge=1, le=1024)
    """Attempts at each task."""
    ahead: int = Field(default=2, ge=0, le=1000)
    """Of `partial` and `async`: batches that may be begun beyond the one that is trained next."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    stint_seconds: float = Field(default=60.0, gt=0)
    """An episode that has run so long is saved at its next turn, gives its slot back, and goes on before fresh tasks begin."""
    seconds: float = Field(default=600.0, gt=0)
    """An episode ends here, all its stints together, with `time_budget`."""
    engines: int = Field(default=1, ge=1, le=1024)
    """Model servers."""
    workers: int = Field(default=1, ge=1, le=1024)
    """Where episodes are played: Ray actors; in this process there is one."""

    @model_validator(mode="before")
    @classmethod
    def _only_the_policy_s_own_words(cls, given: Any) -> Any:
        for key in given if isinstance(given, dict) else ():
            if key in _REFUSED:
                raise ValueError(f"{key}: {_REFUSED[key]}; leave it out")
        return given

    @model_validator(mode="after")
    def _only_of_its_mode(self) -> "RolloutOptions":
        if self.ahead != type(self).model_fields["ahead"].default and self.mode == "sync":
            raise ValueError(f"ahead={self.ahead}: mode=sync begins no batch beyond the next; use partial or async")
        return self

    @model_validator(mode="after")
    def _a_group_has_others(self) -> "RolloutOptions":
        if self.group < 2:
            raise ValueError(f"group={self.group}: the baseline is the mean of the other members; use at least 2")
        return self


class OnPolicy(Options):
    """Which weights may have sampled what is trained on."""

    level: Literal["batch", "turn", "bounded"] = "bounded"
    """`batch`: every token by the weights that are trained. `turn`: every turn whole by one version, however old. `bounded`:
    no turn older than `staleness` versions when it is trained, time in queues included; what is older is dropped."""
    staleness: int = Field(default=4, ge=0)
    """Of `bounded`."""
    mask_older: bool = False
    """Of `turn`: turns by older weights than those that are trained are context and no target."""

    @model_validator(mode="after")
    def _only_of_its_level(self) -> "OnPolicy":
        if self.staleness != type(self).model_fields["staleness"].default and self.level != "bounded":
            raise ValueError(f"staleness={self.staleness}: the level {self.level} does not read it; use level=bounded")
        if self.mask_older and self.level != "turn":
            raise ValueError(f"mask_older=true: the level {self.level} does not read it; use level=turn")
        return self


class RewardOptions(Options):
    """What an episode is worth: format first, then correctness, then how many turns it took."""

    gamma: float = Field(default=0.98, gt=0, le=1)
    """Turn i of T of a right episode is worth gamma^(T-i). 1 pays long episodes like short ones."""
    format: float = Field(default=-0.2, le=0)
    """Of an episode that ends by a broken format, a full window, too many turns or a loop. A wrong answer is worth 0."""


class NegativeOptions(Options):
    """How much failures may weigh, decided after baselines."""

    cap: float | None = Field(default=1.0, ge=0)
    """Most negative mass for one of positive mass (sum of |advantage| over sampled tokens); absent keeps all, 0 none."""
    drop: Literal["unanswered", "random"] = "unanswered"
    """Which go first: those that never came to an answer, or any."""
    weight: float = Field(default=1.0, gt=0)
    """Factor of every negative advantage that is kept."""


class LossOptions(Options):
    """The policy gradient."""

    clip: float = Field(default=2.0, ge=1)
    """Importance weights of tokens by older weights are truncated here."""
    per: Literal["token", "trajectory"] = "token"
    """What counts alike: every sampled token of a batch, or every trajectory whatever its length and number of rows."""


class OptimiserOptions(Options):
    """AdamW."""

    rate: float = Field(default=2e-4, ge=0, lt=1)
    warmup: int = Field(default=0, ge=0)
    """Steps over which the rate rises from 0."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.95, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float = Field(default=1.0, gt=0)
    """Of the gradient's norm."""
    pack: int = Field(default=4096, ge=1)
    """Tokens of a packed sequence; a row that is longer stands alone."""
    ranks: int = Field(default=1, ge=1, le=1024)
    """Processes that share the model (FSDP2)."""
    threads: int | None = Field(default=None, ge=1)
    """CPU only, of each rank; absent shares all cores out among them."""


class EvaluationOptions(Options):
    """Held-out tasks, before and after."""

    attempts: int = Field(default=4, ge=1, le=1024)
    """Sampled attempts at each task; one more is greedy."""
    tasks: int | None = Field(default=None, ge=1)
    """The first so many of the split; absent takes all."""
    split: str = "test"


class HeldOutOptions(EvaluationOptions):
    """Held-out tasks of a training run."""

    release: str | None = None
    """Another release whose split it is; absent, that which is trained on."""


class CheckpointOptions(Options):
    """What of a run is kept."""

    every: int = Field(default=10, ge=1)
    """Steps between checkpoints. Steps since the last one are taken again from their batches when a run resumes."""
    keep: int = Field(default=2, ge=1)
    """Last checkpoints that are kept, besides the best."""


class TrainConfig(Options):
    """One training run. It ends at the first of `steps`, `minutes` and `epochs`."""

    release: str = "latest"
    """A path, a version, or the latest of the store."""
    family: Family = "hard_search"
    split: str = "train"
    policy: str = "starter"
    """Where learning begins: a model folder, or a recipe."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    groups: int = Field(default=16, ge=1)
    """Tasks of a step."""
    steps: int | None = Field(default=None, ge=0)
    minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Of training, all resumptions together, without evaluations."""
    epochs: int | None = Field(default=None, ge=1)
    """Passes over the tasks."""
    rollout: RolloutOptions = RolloutOptions()
    on_policy: OnPolicy = OnPolicy()
    reward: RewardOptions = RewardOptions()
    negatives: NegativeOptions = NegativeOptions()
    loss: LossOptions = LossOptions()
    optimiser: OptimiserOptions = OptimiserOptions()
    evaluation: HeldOutOptions = HeldOutOptions()
    checkpoint: CheckpointOptions = CheckpointOptions()
    limits: Limits | None = None
    """What an episode may spend; what is not set here is what the policy was built with."""
    tools: ToolOptions = ToolOptions()
    transport: Literal["file", "broadcast"] = "file"
    """How weights reach the engines: a file in memory that both sides see, or over the network (NCCL on CUDA, else gloo)."""

    @model_validator(mode="before")
    @classmethod
    def _ends(cls, given: Any) -> Any:
        if isinstance(given, dict) and all(given.get(name) is None for name in ("steps", "minutes", "epochs")):
            return {**given, "epochs": 1}
        return given

    @model_validator(mode="after")
    def _goes_together(self) -> "TrainConfig":
        mode, level = self.rollout.mode, self.on_policy.level
        if level == "batch" and mode != "sync":
            raise ValueError(
                f"on_policy.level=batch: rollout.mode={mode} mixes versions in a batch; use mode=sync, or level turn or bounded"
            )
        if level == "bounded" and mode != "sync" and self.rollout.ahead > self.on_policy.staleness:
            raise ValueError(
                f"rollout.ahead={self.rollout.ahead}: what is begun so far ahead would be older than "
                f"on_policy.staleness={self.on_policy.staleness} when it is trained; lower the one or raise the other"
            )
        return self
