import asyncio
from pathlib import Path

import pytest

from infra.tools.base import ToolDown, ToolResult
from infra.tools.local import LocalTools, ToolClash
from schemas.trajectory import ToolCall
from tests.infra.tools.toolsets import Broken, Counter, Echo, Outside

ADD = ToolCall(name="add", arguments={"by": 1})


async def test_a_session_has_its_own_state_and_can_be_made_again() -> None:
    tools = LocalTools([Counter(), Echo()])
    session = tools.session()
    assert [(await session.call(ADD)).text for _ in range(3)] == ["1", "2", "3"]
    assert await session.call(ToolCall(name="echo", arguments={"text": "x"})) == ToolResult("x", sources=("doc:x",))
    assert session.journal == (ADD,) * 3
    again = tools.session(session.journal)
    assert again.journal == session.journal and (await again.call(ADD)).text == "4"
    assert (await tools.session().call(ADD)).text == "1"


async def test_an_ended_session_leaves_nothing() -> None:
    counter = Counter()
    session = LocalTools([counter]).session()
    await session.call(ADD)
    await session.close()
    assert counter.counts == {}


async def test_a_refused_call_and_one_outside_stay_out_of_the_journal(tmp_path: Path) -> None:
    session = LocalTools([Broken(), Outside(tmp_path / "sent")]).session()
    assert (await session.call(ToolCall(name="refuse", arguments={}))).error
    assert (await session.call(ToolCall(name="send", arguments={"line": "a", "seconds": 0}))).text == "sent"
    assert session.journal == ()


async def test_what_a_toolset_raises_is_a_tool_that_is_down() -> None:
    session = LocalTools([Broken()]).session()
    with pytest.raises(ToolDown, match=r"^boom: the tool is broken \(ZeroDivisionError: by design\)"):
        await session.call(ToolCall(name="boom", arguments={}))


def test_two_toolsets_with_one_tool_name_are_named() -> None:
    with pytest.raises(ToolClash, match=r"^add: a tool of Counter and Counter"):
        LocalTools([Counter(), Counter()])


async def test_calls_that_overlap_change_a_session_one_after_another() -> None:
    session = LocalTools([Counter()]).session()
    assert sorted([r.text for r in await asyncio.gather(*(session.call(ADD) for _ in range(3)))]) == ["1", "2", "3"]
