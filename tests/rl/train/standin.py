"""A stand-in for vLLM's server that exchanges weights, started as `standin.py NOTES FOLDER MODEL BADGE PORT`.

It "computes" with the folder it was given last, and says in `events.jsonl` of NOTES what it was asked. A prompt's first token
is how many milliseconds its turn takes; the two tokens it writes are the versions at its begin and end, from the folders'
names (`v3`). Files in NOTES stage faults, each as often as the number in it says: `dies` and `hangs` in a turn, `unborn` when
started, `mistakes` weights when it loads, `broken` weights on disk, `remembers` old keys and values.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HANG_S = 60.0


class Standin:
    def __init__(self, notes: Path, folder: str, model: str, badge: str) -> None:
        self.notes, self.folder, self.names = notes, folder, [model, badge]
        self.lock = threading.Lock()
        self.paused = False
        self.running = 0

    def note(self, event: str, **what: Any) -> None:
        with self.lock, (self.notes / "events.jsonl").open("a") as file:
            file.write(json.dumps({"event": event, "pid": os.getpid(), **what}) + "\n")

    def staged(self, fault: str) -> bool:
        with self.lock:
            path = self.notes / fault
            left = int(path.read_text()) if path.exists() else 0
            if left:
                path.write_text(str(left - 1))
            return left > 0

    @property
    def version(self) -> int:
        return int(Path(self.folder).name.removeprefix("v"))

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        self.note("turn", salt=request["cache_salt"], temperature=request["temperature"], seed=request["seed"])
        if self.staged("dies"):
            os._exit(9)
        if self.staged("hangs"):
            time.sleep(HANG_S)
        while self.paused:
            time.sleep(0.01)
        with self.lock:
            self.running += 1
        begun = self.version
        time.sleep(request["prompt"][0] / 1000)
        ids = [begun, self.version]
        with self.lock:
            self.running -= 1
        choice = {"text": "", "token_ids": ids, "prompt_token_ids": request["prompt"], "finish_reason": "stop"}
        choice["logprobs"] = {"token_logprobs": [-0.5, -0.5]}
        usage = {"prompt_tokens": len(request["prompt"]), "completion_tokens": 2}
        return {"choices": [choice], "usage": usage}

    def post(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        if path == "/v1/completions":
            return self.complete(request)
        self.note(path, **request)
        if path.startswith("/pause"):
            self.paused = True
            while self.running:
                time.sleep(0.01)
        if path == "/resume":
            self.paused = False
        if path == "/reset_prefix_cache":
            return {"success": not self.staged("remembers")}
        if path == "/collective_rpc":
            folder, _ = request["args"]
            if request["method"] == "take_weights":
                self.folder = folder
                return {"results": ["the model does not compute with them" if self.staged("mistakes") else ""]}
            right = self.folder == folder and not self.staged("broken")
            return {"results": ["" if right else "the tensors are not the published"]}
        return {}


def main(notes: str, folder: str, model: str, badge: str, port: str) -> None:
    server = Standin(Path(notes), folder, model, badge)
    server.note("start", folder=folder)
    if server.staged("unborn"):
        sys.exit("RuntimeError: no memory")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, body: dict[str, Any]) -> None:
            said = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            self.answer({"data": [{"id": name, "owned_by": "vllm", "max_model_len": 64} for name in server.names]})

        def do_POST(self) -> None:
            self.answer(server.post(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def log_message(self, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
