"""Scripts followed to their end, each call answered by the real tool."""

import asyncio

from pipeline.corpora.world import World
from pipeline.families.hard_search.oracle import Move, Script
from rl.tooling import local_tools


def followed(script: Script, world: World) -> list[Move]:
    """Every move. A call of a tool that is none is told so."""

    async def follow() -> list[Move]:
        tools = local_tools(world)
        session = tools.session()
        made = [next(script)]
        while made[-1].calls:
            shown = [
                (await session.call(call)).text if call.name in tools.specs else "error: unknown tool"
                for call in made[-1].calls
            ]
            made.append(script.send("\n".join(shown)))
        await tools.close()
        return made

    return asyncio.run(follow())
