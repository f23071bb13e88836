"""HTTP servers named by how they behave, on real sockets."""

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = {"data": [{"id": "echo", "owned_by": "vllm", "max_model_len": 64}]}


def completion(ids: list[int], prompt: list[int], finish: str = "stop", text: str = "") -> dict[str, Any]:
    """A reply as vLLM writes it."""
    choice = {
        "text": text,
        "token_ids": ids,
        "prompt_token_ids": prompt,
        "logprobs": {"token_logprobs": [-0.5] * len(ids)},
        "finish_reason": finish,
    }
    return {"choices": [choice], "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}}


class ModelServer:
    """Writes the prompt's ids back, cut at `max_tokens`, each call after `delay_s`; counts what it was asked."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.asked: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self._guard = threading.Lock()
        self.now = self.peak = 0

    def get(self, http: BaseHTTPRequestHandler) -> None:
        send(http, 200, json.dumps(MODELS).encode())

    def post(self, http: BaseHTTPRequestHandler) -> None:
        request = json.loads(http.rfile.read(int(http.headers["Content-Length"])))
        with self._guard:
            self.asked[http.path] += 1
            self.requests.append(request)
            self.now += 1
            self.peak = max(self.peak, self.now)
        try:
            time.sleep(self.delay_s)
            self.reply(http, request)
        finally:
            with self._guard:
                self.now -= 1

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        ids = request["prompt"][: request["max_tokens"]]
        send(http, 200, json.dumps(completion(ids, request["prompt"])).encode())


class FlakyServer(ModelServer):
    """Fails the first `failures` calls with `status`, then works."""

    def __init__(self, failures: int, status: int) -> None:
        super().__init__()
        self.failures, self.status = failures, status

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        if self.asked.total() <= self.failures:
            send(http, self.status, b'{"error": {"message": "not now"}}')
        else:
            super().reply(http, request)


class RefusingServer(ModelServer):
    """Refuses every call with the same status and words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__()
        self.status, self.body = status, json.dumps({"error": {"message": message}}).encode()

    def get(self, http: BaseHTTPRequestHandler) -> None:
        send(http, self.status, self.body)

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        send(http, self.status, self.body)


class SayingServer(ModelServer):
    """Answers everything with the same body, whether it means anything or not."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    def get(self, http: BaseHTTPRequestHandler) -> None:
        send(http, 200, self.body)

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        send(http, 200, self.body)


class CutOffServer(ModelServer):
    """Promises more bytes than it sends before it hangs up."""

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        http.send_response(200)
        http.send_header("Content-Length", "1000")
        http.end_headers()
        http.wfile.write(b'{"choices"')
        http.close_connection = True


class DribblingServer(ModelServer):
    """Sends `chunk` every `pause_s`, without end."""

    def __init__(self, chunk: bytes, pause_s: float) -> None:
        super().__init__()
        self.chunk, self.pause_s = chunk, pause_s

    def get(self, http: BaseHTTPRequestHandler) -> None:
        http.send_response(200)
        http.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                http.wfile.write(self.chunk)
                time.sleep(self.pause_s)

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        self.get(http)


class LockedServer(ModelServer):
    """Works for who has the key."""

    def get(self, http: BaseHTTPRequestHandler) -> None:
        if http.headers["Authorization"] != "Bearer sesame":
            send(http, 401, b'{"error": "Unauthorized"}')
        else:
            super().get(http)


def send(http: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        http.send_response(status)
        http.send_header("Content-Length", str(len(body)))
        http.end_headers()
        http.wfile.write(body)


@contextlib.contextmanager
def running(model: ModelServer) -> Iterator[str]:
    """The server's base address while it runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if not isinstance(model, DribblingServer) else "HTTP/1.0"

        def do_GET(self) -> None:
            model.get(self)

        def do_POST(self) -> None:
            model.post(self)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 128

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


@contextlib.contextmanager
def hanging() -> Iterator[str]:
    """Accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@contextlib.contextmanager
def down() -> Iterator[str]:
    """A port that nobody listens on and nobody else can take meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
