"""Tasks and attempts, made by hand."""

from rl.learn.records import Graded, Verdict
from schemas.answer import EntityAnswer
from schemas.query import Problem
from schemas.task import Lineage, Task
from schemas.trajectory import StopReason, Trajectory, Turn


def task(number: int) -> Task:
    return Task.create(
        family="hard_search",
        stratum=f"test/{number % 2}",
        question=f"What is number {number}?",
        answer=EntityAnswer(entity="yes", name="yes"),
        tools=(),
        constraints=Problem(template="test", parameters={"number": number}),
        lineage=Lineage(generator="test", version="1", seed=0, index=number, knobs={}),
    )


def turn(version: int = 0, before: int = 0) -> Turn:
    return Turn(
        prompt_tokens=1 + 2 * before,
        shown_ids=(1,),
        output_ids=(2,),
        logprobs=(-1.0,),
        text="",
        version=str(version),
        call_id="",
    )


def graded(
    uid: str, right: bool, *, task_id: str = "t", version: int = 0, stop: StopReason = StopReason.ANSWERED
) -> Graded:
    answered = stop is StopReason.ANSWERED
    attempt = Trajectory(
        task_id=task_id,
        solver="test",
        arm="tools",
        seed=1,
        turns=(turn(version),),
        stop=stop,
        answer="yes" if answered else None,
    )
    verdict = (Verdict.RIGHT if right else Verdict.WRONG) if answered else Verdict.NONE
    return Graded(uid=uid, trajectory=attempt, verdict=verdict)
