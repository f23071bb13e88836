"""Run one function of a candidate's code on many arguments, for a grader.

Each case runs in a process of its own, which is the first to see the code, so that no case learns of another. What is expected never
comes here: a case gives a value as JSON, and whoever knows better compares.
"""

from collections.abc import AsyncGenerator, Sequence

from pydantic import JsonValue

from infra.sandbox.box import Answer
from infra.sandbox.service import Sandbox


async def run_cases(
    sandbox: Sandbox, code: str, entry: str, arguments: Sequence[Sequence[JsonValue]], seconds: float
) -> AsyncGenerator[Answer, None]:
    """One answer a case, in order. `seconds` are for each case, its loading of the code included.

    Close the iterator when an answer makes the others needless. Raises `NoIsolation`.
    """
    box = await sandbox.take()
    try:
        for given in arguments:
            if not box.alive:
                box = await sandbox.take()
            yield await box.ask({"code": code, "entry": entry, "arguments": list(given)}, seconds)
    finally:
        await box.kill()
