"""A model server that follows a script: the same moves for a caller in token ids and for one in chat messages.

`python -m bench.stand_in` prints its port. A turn takes `TOKEN_S` a token, however many are asked for at once; each turn
depends on nothing but how many turns the prompt holds already. Replies hold what vLLM's hold when one trains on them:
ids and log-probabilities.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from infra.settings import ASSETS
from rl.formats import load_format
from rl.tokens import Answer, ToolCalls
from schemas.trajectory import ToolCall

TOKEN_S = 0.001
MOVES: tuple[ToolCalls | Answer, ...] = (
    ToolCalls((ToolCall(name="search", arguments={"queries": ["capital Niamey"]}),)),
    ToolCalls((ToolCall(name="open", arguments={"id": "Niger"}),)),
    ToolCalls((ToolCall(name="search", arguments={"queries": ["borders Niger Nigeria"]}),)),
    ToolCalls((ToolCall(name="open", arguments={"id": "Nigeria"}),)),
    Answer("Niger"),
)


class StandIn:
    """Answers both kinds of requests."""

    def __init__(self) -> None:
        format = load_format(ASSETS / "starter")
        self._turns = [list(format.turn(move)) for move in MOVES]

    def reply(self, path: str, request: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        """The reply, and the seconds it takes."""
        if path.endswith("/chat/completions"):
            turn = sum(message["role"] == "assistant" for message in request["messages"])
            prompt = [0] * 100 * (turn + 1)
        else:
            prompt = request["prompt"]
            turn = _ends(prompt, self._turns)
        ids = self._turns[turn]
        choice = {"index": 0, "finish_reason": "stop", "token_ids": ids, "prompt_token_ids": prompt}
        if path.endswith("/chat/completions"):
            content = [{"token": "t", "logprob": -0.5, "top_logprobs": []} for _ in ids]
            choice |= {"message": _message(MOVES[turn], turn), "logprobs": {"content": content}}
            choice["finish_reason"] = "tool_calls" if isinstance(MOVES[turn], ToolCalls) else "stop"
        else:
            choice |= {"text": "", "logprobs": {"token_logprobs": [-0.5] * len(ids)}}
        used = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)}
        reply = {"id": "r", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
        return {**reply, "usage": used, "prompt_token_ids": prompt}, len(ids) * TOKEN_S

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept for as long as the caller keeps it."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                lines = head.decode("latin-1").lower().split("\r\n")
                length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
                reply, seconds = self.reply(path, json.loads(await reader.readexactly(length)))
                await asyncio.sleep(seconds)
                body = json.dumps(reply).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _ends(prompt: list[int], turns: list[list[int]]) -> int:
    """How many of the script's turns the prompt holds: each ends with ids that stand in it in their order."""
    at = found = 0
    for turn in turns:
        step = next((i for i in range(at, len(prompt) - len(turn) + 1) if prompt[i : i + len(turn)] == turn), None)
        if step is None:
            return found
        at, found = step + len(turn), found + 1
    return found


def _message(move: ToolCalls | Answer, turn: int) -> dict[str, Any]:
    if isinstance(move, Answer):
        return {"role": "assistant", "content": move.text}
    calls = [
        {
            "id": f"call-{turn}-{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for number, call in enumerate(move.calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


async def main() -> None:
    server = await asyncio.start_server(StandIn().serve, "127.0.0.1", 0, limit=1 << 24)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
