"""What curation measures a task with: a served model in one arm.

Arms: `tools`, the policy in its environment; `closed_book`, a chat model asked for a name it knows by heart; `reasoning` and
`no_reasoning`, a chat model on a computed question with and without room to work it out.
"""

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator

from infra.client import ModelClient
from infra.endpoint import Endpoint, HopelessError, ModelError
from infra.engine import EngineOptions, attach, serve
from infra.journal import Journal
from infra.models import resolve
from infra.settings import Settings
from pipeline.corpora.world import World
from pipeline.curate import Arm as Arm
from pipeline.families.hard_search.generator import TOOLS
from pipeline.solver import Solver, SolverDown
from rl.env import Env
from rl.policy import Policy
from rl.prompts import CHATS, Chat
from rl.rollout import ServedSampler, Watch, rollout, unwatched
from rl.tooling import Opened, open_tools
from schemas.config import Served
from schemas.episode import Limits, ToolOptions
from schemas.errors import TouchstoneError
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory, Turn


class SolverError(TouchstoneError):
    """An arm that this model or this run cannot have."""


class AgentSolver:
    """A policy with its tools; many attempts may run at once."""

    arm = "tools"

    def __init__(
        self,
        client: ModelClient,
        world: World | None,
        policy: Policy,
        opened: Opened,
        *,
        temperature: float = 1.0,
        seconds: float = 600.0,
        watch: Watch = unwatched,
    ) -> None:
        """`seconds` bounds one attempt. An attempt never outgrows the server's window."""
        self.name = solver_name(client.endpoint)
        self._sampler = ServedSampler(client, client.endpoint.revision, temperature)
        self._world = world
        self._opened = opened
        self._policy = policy
        window = min(policy.limits.context, client.endpoint.max_model_len or policy.limits.context)
        self._limits = policy.limits.model_copy(update={"context": window})
        self._seconds = seconds
        self._watch = watch

    def out_of_reach(self, task: Task) -> str | None:
        """A name in the task that the policy has no token for, `None` where it knows them all."""
        return None if self._world is None else self._policy.unknown_name(task, self._world)

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        return await rollout(
            task,
            seed,
            env=Env(self._opened.tools, self._policy.format, self._limits, self._opened.extra),
            sampler=self._sampler,
            solver=self.name,
            seconds=self._seconds,
            watch=self._watch,
        )


class ChatSolver:
    """A chat model that answers in one message, without tools. What it wrote is the answer; the grader reads it."""

    def __init__(self, client: ModelClient, arm: str, chat: Chat, *, temperature: float = 1.0) -> None:
        self.name = solver_name(client.endpoint)
        self.arm = arm
        self._client = client
        self._chat = chat
        self._temperature = temperature

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        turns: tuple[Turn, ...] = ()
        tokens, answer, error = 0, None, ""
        try:
            said = await self._client.chat(
                self._chat.messages(task),
                max_tokens=self._chat.max_tokens,
                seed=seed,
                temperature=self._temperature,
                stop=self._chat.stop,
            )
        except HopelessError as broken:
            raise SolverDown(str(broken)) from broken
        except ModelError as broken:
            stop, error = StopReason.INFRA, str(broken)
        else:
            tokens = said.prompt_tokens + said.completion_tokens
            turns = (
                Turn(
                    prompt_tokens=said.prompt_tokens,
                    output_ids=said.token_ids,
                    logprobs=said.logprobs,
                    text=said.text,
                    version=self._client.endpoint.revision,
                    call_id=said.call_id,
                ),
            )
            stop, answer = _read(said.text, said.finish)
        return Trajectory(
            task_id=task.task_id,
            solver=self.name,
            arm=self.arm,
            seed=seed,
            turns=turns,
            stop=stop,
            answer=answer,
            error=error,
            tokens=tokens,
        )


def _read(text: str, finish: str) -> tuple[StopReason, str | None]:
    """How a chat ended. A text cut by the token limit is no answer, even where one could be read from it."""
    if finish == "length":
        return StopReason.MAX_TOKENS, None
    answer = text.strip()
    return (StopReason.ANSWERED, answer) if answer else (StopReason.NO_ANSWER, None)


def solver_name(endpoint: Endpoint) -> str:
    """Model and revision, as difficulty records store it."""
    return f"{endpoint.model}@{endpoint.revision}"


@contextlib.contextmanager
def open_endpoint(
    served: Served, *, settings: Settings, concurrency: int = 128, unwanted: threading.Event | None = None
) -> Iterator[Endpoint]:
    """The model, served here for as long as the block runs, or the one at `served.url`.

    Blocks while a server starts, unless `unwanted` is set meanwhile. Raises `UnavailableModel` or `ModelError`.
    """
    if served.url is not None:
        yield attach(served.url, served.model, settings.api_key)
        return
    model = resolve(served.model, settings.cache)
    options = EngineOptions(max_num_seqs=concurrency)
    with serve(model, cache=settings.cache, options=options, unwanted=unwanted) as endpoint:
        yield endpoint


@contextlib.asynccontextmanager
async def solver_for(
    served: Served,
    arm: Arm,
    *,
    endpoint: Endpoint,
    settings: Settings,
    journal: Journal | None,
    world: World | None = None,
    limits: Limits | None = None,
    tools: ToolOptions | None = None,
    concurrency: int = 128,
) -> AsyncIterator[Solver]:
    """One arm on a model that is up; several arms may share an endpoint. `tools` needs the world.

    Raises `SolverError` for an arm that cannot be had.
    """
    async with ModelClient(endpoint, journal, concurrency) as client:
        if arm != "tools":
            yield ChatSolver(client, arm, CHATS[arm], temperature=served.temperature)
            return
        if world is None:
            raise SolverError(f"{served.model}: the arm `tools` searches a world and none is given; load one")
        if not endpoint.vllm:
            raise SolverError(
                f"{endpoint.url}: the arm `tools` needs token ids, which only vllm servers return; serve the model with vllm"
            )
        policy = Policy.load(resolve(served.model, settings.cache).path, limits)
        async with open_tools(world, tools or ToolOptions(), TOOLS) as opened:
            yield AgentSolver(client, world, policy, opened, temperature=served.temperature)
