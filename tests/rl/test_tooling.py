"""Tools opened for episodes: ours in processes of their own, a user's servers beside them."""

import sys
from pathlib import Path

import pytest

from infra.tools.base import ToolDown
from infra.tools.local import ToolClash
from rl.env import Env, Snapshot
from rl.tokens import ToolCalls
from rl.tooling import NoPages, local_tools, open_tools
from schemas.episode import ToolOptions, ToolServer
from schemas.trajectory import ToolCall
from tests.rl.test_env import task
from tests.rl.tiny import FORMAT, sampled
from tests.worlds import toy_world

WORLD = toy_world()
NIGER = ToolCall(name="search", arguments={"queries": ["capital Niamey"]})


def users(folder: Path) -> ToolServer:
    """A user's server: `echo` and others."""
    command = (sys.executable, "-m", "tests.infra.tools.toolsets", "--stdio", str(folder))
    return ToolServer(name="mine", command=command)


async def test_a_world_in_memory_is_searched_over_a_server_as_it_is_here() -> None:
    local = local_tools(WORLD)
    async with open_tools(WORLD, ToolOptions(), ("search", "open")) as opened:
        assert sorted(opened.tools.specs) == ["back", "find", "follow", "open", "search"]
        assert opened.tools.specs == local.specs and opened.extra == ()
        assert await opened.tools.session().call(NIGER) == await local.session().call(NIGER)


async def test_only_the_servers_that_a_task_needs_are_started() -> None:
    async with open_tools(None, ToolOptions(), ("python",)) as opened:
        assert list(opened.tools.specs) == ["python"]
        session = opened.tools.session()
        await session.call(ToolCall(name="python", arguments={"code": "x = 6"}))
        assert (await session.call(ToolCall(name="python", arguments={"code": "x * 7"}))).text.strip() == "42"
        await session.close()
    async with open_tools(None, ToolOptions(), ()) as opened:
        assert opened.tools.specs == {}


async def test_an_episode_is_restored_in_other_servers_with_its_tools_state() -> None:
    def python(code: str) -> tuple[int, ...]:
        return FORMAT.turn(ToolCalls((ToolCall(name="python", arguments={"code": code}),)))

    async with open_tools(None, ToolOptions(), ("python",)) as opened:
        before = Env(opened.tools, FORMAT)
        before.reset(task("python"))
        await before.step(python("x = 40"))
        stored = before.snapshot().model_dump_json()
        await before.close()
    async with open_tools(None, ToolOptions(code_seconds=1, code_memory=256), ("python",)) as opened:
        after = Env(opened.tools, FORMAT)
        after.restore(task("python"), Snapshot.model_validate_json(stored))
        assert (await after.step(python("x + 2"))).text == "42\n"
        assert "took longer than the 1 s" in ((await after.step(python("while True: pass"))).text or "")
        assert "memory_limit" in ((await after.step(python("y = bytearray(400 << 20)"))).text or "")
        assert (await after.step(python("x + 3"))).text == "43\n"
        await after.close()


async def test_a_user_s_tools_are_offered_beside_those_of_the_task(tmp_path: Path) -> None:
    async with open_tools(WORLD, ToolOptions(servers=(users(tmp_path),)), ("search",)) as opened:
        assert "echo" in opened.extra and "search" not in opened.extra
        env = Env(opened.tools, FORMAT, extra=opened.extra)
        env.reset(task("search"))
        call = '<tool_call>{"name": "echo", "arguments": {"text": "hello"}}</tool_call><|end|>'
        assert (await env.step(sampled(call))).text == "hello"
        await env.close()


async def test_a_denied_page_does_not_exist(tmp_path: Path) -> None:
    options = ToolOptions(deny=("country/niger", "capital-city/niamey"))
    async with open_tools(WORLD, options, ("search", "open")) as opened:
        session = opened.tools.session()
        assert "Niger:" not in (await session.call(NIGER)).text
        assert (await session.call(ToolCall(name="open", arguments={"id": "Niger"}))).text == "error: no page Niger"
        await session.close()


async def test_a_folder_of_html_takes_the_place_of_the_world(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<html><title>Alpha</title><body><p>The capital of Alpha is Beta City.</p></body>")
    async with open_tools(WORLD, ToolOptions(pages=str(tmp_path)), ("search",)) as opened:
        found = await opened.tools.session().call(ToolCall(name="search", arguments={"queries": ["capital"]}))
    assert "Beta City" in found.text and "Niamey" not in found.text


async def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(NoPages, match="the task has no world"):
        async with open_tools(None, ToolOptions(), ("search",)):
            pass
    with pytest.raises(ToolDown, match="no pages here"):
        async with open_tools(None, ToolOptions(pages=str(tmp_path / "none")), ("search",)):
            pass
    twice = (users(tmp_path), users(tmp_path).model_copy(update={"name": "yours"}))
    with pytest.raises(ToolClash, match="a tool of mine and yours"):
        async with open_tools(None, ToolOptions(servers=twice), ()):
            pass
