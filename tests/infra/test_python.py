"""The tool `python`, as a policy meets it."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from infra.sandbox import Limits, Sandbox
from infra.tools.base import Effect, ToolDown
from infra.tools.python import PythonTools


@pytest.fixture
async def python() -> AsyncIterator[PythonTools]:
    async with Sandbox(limits=Limits(seconds=0.5, journal=5_000), pool=1) as sandbox:
        yield PythonTools(sandbox)


async def call(python: PythonTools, code: str, session: str = "a") -> tuple[str, bool]:
    result = await python.call(session, "python", {"code": code})
    return result.text, result.error


async def test_state_lives_in_a_session_until_it_ends(python: PythonTools) -> None:
    assert [spec.effect for spec in python.specs] == [Effect.SESSION]
    assert await call(python, "x = 2") == ("", False)
    assert await call(python, "x + 1") == ("3\n", False)
    await python.end("a")
    text, error = await call(python, "x")
    assert "NameError: name 'x' is not defined" in text and not error


async def test_a_call_that_went_too_far_is_an_error_that_says_why(python: PythonTools) -> None:
    text, error = await call(python, "print('before')\nwhile True: pass")
    assert (
        error
        and text == "timeout: the code took longer than the 0.5 s that a call has; nothing it did was kept\nbefore"
    )
    assert (await call(python, "import os; os._exit(1)"))[0].startswith("crashed: the code ended the interpreter")
    assert (await call(python, "#" * 6_000))[0].startswith("journal=5000: ")


async def test_a_policy_gets_the_start_and_the_end_of_long_output(python: PythonTools) -> None:
    text, error = await call(python, "print('a' * 9_000 + 'z')")
    assert not error and text.endswith("z\n") and "[7,002 characters cut]" in text and len(text) < 2_100


async def test_a_closed_sandbox_is_a_tool_that_is_down(python: PythonTools) -> None:
    await python.close()
    with pytest.raises(ToolDown, match="sandbox: it is closed"):
        await call(python, "1")


async def test_a_session_that_cannot_be_made_again_starts_anew_and_says_so(python: PythonTools) -> None:
    await call(python, f"import time, os; x = 1\nif time.time() > {time.time() + 0.5}: 1 / 0")
    await asyncio.sleep(0.6)
    await call(python, "os._exit(0)")
    text, error = await call(python, "'x' in dir()")
    assert not error and text.startswith(
        "note: the session was lost and started anew with this call; nothing of before is left"
    )
    assert text.endswith("False\n")
    assert await call(python, "3") == ("3\n", False)


async def test_a_call_that_gave_another_output_is_told_after_a_crash(python: PythonTools) -> None:
    await call(python, "import os, uuid; uuid.uuid4()")
    await call(python, "os._exit(0)")
    told = "note: the session was made again, and call 1 gave another output than before\n"
    assert await call(python, "1") == (told + "1\n", False)
