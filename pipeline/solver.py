"""What curation needs of a model: something that attempts a task."""

from typing import Protocol

from schemas.errors import TouchstoneError
from schemas.task import Task
from schemas.trajectory import Trajectory


class SolverDown(TouchstoneError):
    """The solver, not a task, is at fault: no attempt would come back."""


class Solver(Protocol):
    """One model in one arm. Equal (task, seed) is the same attempt: a repeated one costs no model call.

    A broken model or tool is a trajectory that stops with `infra` or `tool_down`; a server that will never answer again
    raises `SolverDown`.
    """

    @property
    def name(self) -> str:
        """Model and revision, as difficulty records store it."""
        ...

    @property
    def arm(self) -> str: ...

    async def __call__(self, task: Task, seed: int) -> Trajectory: ...
