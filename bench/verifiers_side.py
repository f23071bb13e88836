"""Episodes by the library verifiers: as many as a line says. Runs among its packages; of ours it uses the tools alone.

`python -m bench.verifiers_side URL IN_FLIGHT`. Its own `ToolEnv` and client, in one process; tools are the same functions
over the same world as on our side, and replies carry the ids and log-probabilities that it keeps for training.
"""

import asyncio
import json
import sys
import time

import verifiers as vf  # type: ignore[import-not-found]
from datasets import Dataset  # type: ignore[import-untyped]
from verifiers.clients import OpenAIChatCompletionsClient  # type: ignore[import-not-found]
from verifiers.types import ClientConfig  # type: ignore[import-not-found]

from infra.settings import Settings
from pipeline.corpora import load_world
from rl.tooling import local_tools
from schemas.trajectory import ToolCall

QUESTION = "What is there?"


async def main(url: str, in_flight: str) -> None:
    session = local_tools(load_world("atlas", Settings.from_env().cache)).session()

    async def search(queries: list[str]) -> str:
        """The best pages for each query."""
        return (await session.call(ToolCall(name="search", arguments={"queries": list(queries)}))).text

    async def open(id: str) -> str:
        """A page, by its title."""
        return (await session.call(ToolCall(name="open", arguments={"id": id}))).text

    async def right(completion: vf.Messages) -> float:
        return float(completion[-1].content == "Niger")

    rows = Dataset.from_dict({"question": [QUESTION], "answer": ["Niger"]})
    env = vf.ToolEnv(tools=[search, open], max_turns=10, dataset=rows, rubric=vf.Rubric(funcs=[right]))
    config = ClientConfig(api_base_url=url, api_key_var="NO_KEY", max_connections=256)
    client = OpenAIChatCompletionsClient(config)
    example = env.get_dataset()[0]
    slots = asyncio.Semaphore(int(in_flight))
    sampling = {"logprobs": True, "max_tokens": 256, "extra_body": {"return_token_ids": True}}

    async def episode() -> bool:
        async with slots:
            state = await env.run_rollout({**example, "example_id": 0}, client, "scripted", sampling)
        return bool(state["reward"] == 1.0)

    while line := await asyncio.to_thread(sys.stdin.readline):
        began, cpu = time.perf_counter(), time.process_time()
        ended = await asyncio.gather(*(episode() for _ in range(int(line))))
        took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
        print(json.dumps({**took, "right": sum(ended)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
