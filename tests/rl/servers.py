"""Model servers named by what they do. They speak the part of vLLM's interface that a client uses, over real HTTP."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from infra.endpoint import Endpoint
from tests.rl.tiny import sampled

ASSISTANT = sampled("<|assistant|>")[0]


class ScriptedPolicy:
    """Writes `turns[i]` as its i-th turn, whatever it is shown; cut at the token limit like any other model."""

    def __init__(self, *turns: str) -> None:
        self.turns = [sampled(turn) for turn in turns]
        self.requests: list[dict[str, Any]] = []

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        turn = self.turns[request["prompt"].count(ASSISTANT) - 1]
        ids = turn[: request["max_tokens"]]
        return completion(ids, request["prompt"], "stop" if len(ids) == len(turn) else "length")


class HangingPolicy(ScriptedPolicy):
    """Writes its script, then never answers again."""

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["prompt"].count(ASSISTANT) > len(self.turns):
            time.sleep(30)
        return super().reply(request)


class ChattyModel:
    """Answers every chat with the same text."""

    def __init__(self, text: str, finish: str = "stop") -> None:
        self.text, self.finish = text, finish
        self.requests: list[dict[str, Any]] = []

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        choice = {"message": {"content": self.text}, "finish_reason": self.finish}
        return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


def completion(ids: Sequence[int], prompt: Sequence[int], finish: str) -> dict[str, Any]:
    choice = {
        "text": "",
        "token_ids": list(ids),
        "prompt_token_ids": list(prompt),
        "logprobs": {"token_logprobs": [-0.5] * len(ids)},
        "finish_reason": finish,
    }
    return {"choices": [choice], "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}}


@contextlib.contextmanager
def served(model: ScriptedPolicy | ChattyModel) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(model.reply(request)).encode()
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", "", "scripted", "r1", max_model_len=4096)
    finally:
        server.shutdown()
        server.server_close()
