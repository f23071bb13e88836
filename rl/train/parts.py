"""The parts of a training run and what passes between them.

Parts are plain classes whose methods are all async, so that a part in this process and one that is a Ray actor are called
alike (`infra.place`). Nothing that blocks runs on an event loop: a part that computes does it in a thread of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import Field

from infra.client import Completion
from rl.env import Snapshot
from rl.learn.records import Batch, Graded, Weights
from schemas.base import Record
from schemas.measured import Diagnosis
from schemas.task import Task
from schemas.trajectory import Turn


class Order(Record):
    """One stint of an attempt: from its beginning, or from where it was saved."""

    uid: str
    task: Task
    seed: int
    turns: tuple[Turn, ...] = ()
    """Those it has already; its snapshot is the state after the last of them."""
    snapshot: Snapshot | None = None
    spent: float = Field(default=0.0, ge=0)
    """Seconds of earlier stints."""


class Played(Record):
    """What a stint led to: an attempt that is over (`graded`, with its `diagnosis`), or one to go on with (`saved`)."""

    graded: Graded | None = None
    diagnosis: Diagnosis | None = None
    saved: Order | None = None
    spent: float
    """Seconds of all stints."""


class Engine(Protocol):
    """Samples turns, each whole by one version of the weights. A `rl.rollout.Sampler`.

    A server that dies is started again with the current weights, and the turns that were with it are sampled again.
    """

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        """Raises `SolverDown` once a server cannot be kept up, `ModelError` for a turn that cannot be sampled."""
        ...

    async def swap(self, weights: Weights) -> None:
        """Take these weights at a turn boundary: turns that run end first, those that are asked for meanwhile wait.

        Returns once what is loaded was proved to be what was published. Raises `ModelError`.
        """
        ...

    async def close(self) -> None: ...


class Worker(Protocol):
    """Plays many episodes at once."""

    async def play(self, order: Order) -> Played:
        """One stint. A broken episode is an attempt that stops with `infra`, `tool_down` or `time_budget`, never an error;
        raises `SolverDown` where no attempt would come back."""
        ...

    async def cut(self) -> None:
        """Save every episode that runs at its next turn, as if its stint were over."""
        ...

    async def close(self) -> None: ...


class Trainer(Protocol):
    """The model that learns, with its optimiser. Version 0 are the weights it began with, version n those after step n."""

    async def step(self, batch: Batch) -> Mapping[str, float]:
        """One step of the optimiser. Gives metrics, `<what>/<population>`; a batch without rows changes nothing."""
        ...

    async def publish(self, version: int) -> Weights:
        """Write the weights where engines read them; those of older versions but the last go."""
        ...

    async def save(self, folder: str) -> None:
        """Everything that goes on from here: a model folder with the policy's tokenizer and `build.json`, the optimiser's state
        beside it. The folder is there whole or not at all."""
        ...

    async def load(self, folder: str) -> None:
        """Go on from a folder that `save` wrote. Raises `TrainerError`."""
        ...

    async def close(self) -> None: ...


class Parts(Protocol):
    """All parts of a run, wherever they are."""

    @property
    def trainer(self) -> Trainer: ...

    async def play(self, order: Order) -> Played:
        """One stint, on the worker with the fewest. Raises `PartDied` where it, or an engine of its, died."""
        ...

    async def cut(self) -> None:
        """`Worker.cut` of every worker."""
        ...

    async def swap(self, weights: Weights) -> None:
        """`Engine.swap` of every engine."""
        ...

    async def mend(self) -> None:
        """Start every part anew that died: an engine with the weights of the last swap, a trainer with nothing loaded."""
        ...
