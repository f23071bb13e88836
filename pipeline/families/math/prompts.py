"""How a model is asked a math task: worked examples for the arm that reasons, bare answers for the arm that may not.

Both arms see the same examples of the task's own template, so they differ in nothing but the room to think.
"""

from functools import cache
from random import Random

from pipeline.families.math.templates import TEMPLATES, Parameters, Template
from schemas.answer import canonical_answer
from schemas.query import Problem
from schemas.task import Task

SHOTS = 3
"""Examples before the question."""
REASONING_TOKENS = 96
"""Tokens of an answer with its steps; the longest worked example needs fewer."""
DIRECT_TOKENS = 28
"""Tokens of an answer without steps."""

_REASONING = "Solve the problem step by step, one short line a step. End with a line: Answer: <answer>"
_DIRECT = "Give the answer only, without any steps, as: Answer: <answer>"


def messages(task: Task, reasoning: bool) -> list[dict[str, str]]:
    """The chat that asks for `task`. Depends on the template and the question alone, never on the gold."""
    chat = [{"role": "system", "content": _REASONING if reasoning else _DIRECT}]
    template = TEMPLATES.get(task.constraints.template) if isinstance(task.constraints, Problem) else None
    if template is not None:
        for i in range(SHOTS):
            question, steps, answer = example(template, i)
            chat.append({"role": "user", "content": question})
            lines = [*(steps if reasoning else ()), f"Answer: {answer}"]
            chat.append({"role": "assistant", "content": "\n".join(lines)})
    return [*chat, {"role": "user", "content": task.question}]


def example(template: Template, i: int) -> tuple[str, list[str], str]:
    """Worked example `i` of a template: question, steps, answer. No candidate repeats one."""
    parameters = example_parameters(template, i)
    question = template.ask(parameters, Random(f"example/{template.name}/{i}/words"))
    return question, template.work(parameters), canonical_answer(template.solve(parameters))


@cache
def example_parameters(template: Template, i: int) -> Parameters:
    return template.draw(Random(f"example/{template.name}/{i}"))
