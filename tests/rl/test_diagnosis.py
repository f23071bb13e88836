"""Policies that fail on purpose, each in one way, in the real environment: the diagnosis is the way, and says what shows it."""

from collections.abc import Sequence

import pytest

from infra.client import Completion
from infra.endpoint import ModelError
from pipeline.grading import grade
from rl.diagnosis import Diagnoser
from rl.env import Env
from rl.learn.records import Verdict
from rl.rollout import rollout
from rl.tooling import local_tools
from schemas.answer import AnswerSpec, DateAnswer, NumberAnswer, TextAnswer
from schemas.episode import Limits
from schemas.measured import CONTENT, AttemptOutcome, Diagnosis
from schemas.query import Clue, EntityRef, Query
from schemas.task import Evidence, NearMiss, Task
from schemas.trajectory import StopReason
from tests.pipeline.tasks import attempt, math_task, search_task
from tests.rl.tiny import FORMAT, sampled
from tests.worlds import toy_world

NEIGHBOURS = Query(
    type="country",
    clues=tuple(
        Clue(relation="borders", target=EntityRef(entity=f"country/{name}")) for name in ("niger", "senegal", "guinea")
    ),
)
"""Mali alone. Guinea-Bissau borders Senegal and Guinea, Burkina Faso only Niger, Spain none."""
TASK = search_task(NEIGHBOURS, "country/mali", "Which country borders Niger, Senegal and Guinea?")


def call(name: str, arguments: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call><|end|>'


def answer(text: str) -> str:
    return f"<answer>{text}</answer><|end|>"


LOOK = call("search", '{"queries": ["borders Niger Senegal Guinea"], "k": 10}')
NO_STEP = "I had better look.<|end|>"


class Recital:
    """Says one text after the other, and the last one for ever; an error is raised."""

    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        said = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(said, Exception):
            raise said
        ids = sampled(said)[:max_tokens]
        return Completion(
            text=said,
            token_ids=ids,
            logprobs=(0.0,) * len(ids),
            prompt_tokens=len(prompt),
            completion_tokens=len(ids),
            finish="stop",
            call_id="",
            version="1",
        )


async def diagnosed(*texts: str | Exception, limits: Limits | None = None, task: Task = TASK) -> Diagnosis:
    env = Env(local_tools(toy_world()), FORMAT, limits or Limits(context=20_000))
    played = await rollout(task, 0, env=env, sampler=Recital(*texts), solver="recital@1")
    verdict = Verdict.NONE if played.answer is None else Verdict(grade(task.answer, played.answer).verdict)
    return Diagnoser(toy_world())(task, played, verdict)


@pytest.mark.parametrize(
    ("texts", "limits", "outcome"),
    [
        ((LOOK, answer("Mali")), {}, AttemptOutcome.RIGHT),
        ((LOOK, answer("Guinea-Bissau")), {}, AttemptOutcome.NEAR_MISS),
        ((LOOK, answer("the Guinea-Bissau")), {}, AttemptOutcome.NEAR_MISS),
        ((LOOK, answer("Burkina Faso")), {}, AttemptOutcome.WRONG_ENTITY),
        ((LOOK, answer("Atlantis")), {}, AttemptOutcome.WRONG_ENTITY),
        ((LOOK, answer("unknown")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK, answer("I don’t know.")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK, answer("Cannot be determined")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK, answer("Sorry, I was unable to find it.")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK, answer("The pages do not say")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK, answer("I don't think it is Mali")), {}, AttemptOutcome.WRONG_ENTITY),
        ((NO_STEP, answer("")), {}, AttemptOutcome.GAVE_UP),
        ((LOOK,), {}, AttemptOutcome.REPEATED),
        ((LOOK, call("search", '{"queries": ["Niger"]}'), LOOK), {"max_turns": 3}, AttemptOutcome.TURN_LIMIT),
        ((NO_STEP,), {}, AttemptOutcome.FORMAT),
        ((call("fetch", "{}"),), {}, AttemptOutcome.FORMAT),
        ((LOOK,), {"max_tokens": 20}, AttemptOutcome.TRUNCATED),
        ((LOOK,), {"context": 400}, AttemptOutcome.OVERFLOW),
        ((LOOK, ModelError("gone")), {}, AttemptOutcome.INFRA),
    ],
)  # fmt: skip
async def test_each_way_to_fail_is_told_from_the_others(
    texts: tuple[str | Exception, ...], limits: dict[str, int], outcome: AttemptOutcome
) -> None:
    assert (await diagnosed(*texts, limits=Limits(**{"context": 20_000} | limits))).outcome is outcome


async def test_a_near_miss_is_named_and_clues_are_counted() -> None:
    near = await diagnosed(LOOK, answer("Guinea-Bissau"))
    assert (near.named, near.clues, near.clues_met) == ("Guinea-Bissau", 3, 2)
    far = await diagnosed(LOOK, answer("Burkina Faso"))
    assert (far.named, far.clues_met) == ("", 1)
    assert (await diagnosed(LOOK, answer("Atlantis"))).clues_met is None
    assert (await diagnosed(LOOK, answer("Mali"))).clues_met == 3


async def test_pages_that_were_shown_and_tools_that_were_called() -> None:
    blind = await diagnosed(answer("Spain"))
    assert (blind.pages, blind.unread, blind.uncalled, blind.calls) == (1, ("country/mali",), ("search", "open"), {})
    found = await diagnosed(call("search", '{"queries": ["Mali borders"]}'), answer("Spain"))
    assert (found.unread, found.uncalled, found.calls) == ((), ("open",), {"search": 1})
    opened = await diagnosed(call("open", '{"id": "country/mali"}'), answer("Spain"))
    assert (opened.unread, opened.uncalled) == ((), ("search",))
    elsewhere = await diagnosed(call("open", '{"id": "country/spain"}'), answer("Spain"))
    assert elsewhere.unread == ("country/mali",)


async def test_where_it_first_went_wrong() -> None:
    assert (await diagnosed(LOOK, answer("Spain"))).failed_at == 2
    assert (await diagnosed(LOOK, NO_STEP, answer("Spain"))).failed_at == 2
    assert (await diagnosed(call("open", '{"id": "nowhere"}'), LOOK, answer("Spain"))).failed_at == 1
    assert (await diagnosed(NO_STEP, answer("Mali"))).failed_at is None
    assert (await diagnosed(ModelError("gone"))).failed_at is None


def judged(task: Task, text: str, world: bool = True) -> Diagnosis:
    verdict = Verdict(grade(task.answer, text).verdict)
    return Diagnoser(toy_world() if world else None)(task, attempt(task, 0, text), verdict)


@pytest.mark.parametrize("answer", [NumberAnswer(value="5"), NumberAnswer(value="2/3")])
def test_what_was_computed_wrong_with_everything_in_hand_is_arithmetic(answer: AnswerSpec) -> None:
    assert judged(math_task(answer=answer), "6").outcome is AttemptOutcome.ARITHMETIC
    assert judged(math_task(answer=answer), "unknown").outcome is AttemptOutcome.GAVE_UP


def test_a_value_that_had_to_be_read_up_is_a_wrong_value() -> None:
    assert judged(math_task(answer=DateAnswer(value="1987")), "1988").outcome is AttemptOutcome.WRONG_VALUE
    assert judged(math_task(answer=TextAnswer(value="a b")), "b a").outcome is AttemptOutcome.WRONG_VALUE
    page = toy_world().documents["country/mali"]
    read = Evidence(document=page.id, document_hash=page.hash, start=0, end=4, quote=page.text[:4])
    fields = {name: getattr(math_task(), name) for name in Task.model_fields if name != "task_id"}
    assert judged(Task.create(**fields | {"evidence": (read,)}), "6").outcome is AttemptOutcome.WRONG_VALUE


def test_a_stored_runner_up_is_known_without_the_world() -> None:
    fields = {name: getattr(TASK, name) for name in Task.model_fields if name != "task_id"}
    task = Task.create(**fields | {"near_misses": (NearMiss(answer="Guinea-Bissau", why="borders Niger"),)})
    near = judged(task, "Guinea-Bissau", world=False)
    assert (near.outcome, near.named, near.clues_met) == (AttemptOutcome.NEAR_MISS, "Guinea-Bissau", None)
    assert judged(task, "Spain", world=False).outcome is AttemptOutcome.WRONG_ENTITY
    slip = Task.create(
        **{name: getattr(math_task(), name) for name in Task.model_fields if name != "task_id"}
        | {"near_misses": (NearMiss(answer="4", why="rounded down"),)}
    )
    assert (judged(slip, "4").outcome, judged(slip, "4").named) == (AttemptOutcome.ARITHMETIC, "4")


def test_what_the_grader_cannot_tell_is_nobody_s_failure() -> None:
    assert judged(math_task(answer=DateAnswer(value="1987-04-03")), "03/04/1987").outcome is AttemptOutcome.UNSURE
    assert AttemptOutcome.UNSURE not in CONTENT


@pytest.mark.parametrize("stop", [stop for stop in StopReason if stop is not StopReason.ANSWERED])
def test_every_stop_has_an_outcome_of_its_own_kind(stop: StopReason) -> None:
    broken = {
        StopReason.TIME_BUDGET: AttemptOutcome.INFRA,
        StopReason.INFRA: AttemptOutcome.INFRA,
        StopReason.TOOL_DOWN: AttemptOutcome.TOOL_ERROR,
    }
    found = Diagnoser(None)(TASK, attempt(TASK, 0, None, stop=stop), Verdict.NONE).outcome
    assert found is broken.get(stop, found)
    assert (found in {AttemptOutcome.INFRA, AttemptOutcome.TOOL_ERROR}) == (stop in broken)
