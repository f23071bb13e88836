"""Stand-ins for a model server, started as `standin.py BEHAVIOUR NOTES MODEL BADGE PORT`; NOTES is a folder to remember starts in.

works       serves its list of models to who has the key
dies        ends at once, an error in its log
clashes     finds its port taken the first time, works the second
stranger    the first time someone else's server has the port, then it works
sleeps      never becomes ready, and has a child
"""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


def main(behaviour: str, notes: str, model: str, badge: str, port: str) -> None:
    starts = len(list(Path(notes).iterdir()))
    (Path(notes) / str(starts)).write_text(json.dumps({"pid": os.getpid(), "argv": sys.argv, "port": port}))
    if behaviour == "dies":
        print("loading\n(Core pid=1) ERROR RuntimeError: the weights are for another model\nbye", flush=True)
        sys.exit(3)
    if behaviour == "clashes" and starts == 0:
        raise OSError(98, "Address already in use")
    if behaviour == "sleeps":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(600)
    listed = ["someone-else"] if behaviour == "stranger" and starts == 0 else [model, badge]
    key = f"Bearer {os.environ['VLLM_API_KEY']}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers["Authorization"] == key
            self.send_response(200 if allowed else 401)
            self.end_headers()
            cards = [{"id": name, "owned_by": "vllm", "max_model_len": 64} for name in listed]
            self.wfile.write(json.dumps({"data": cards} if allowed else {}).encode())

    HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
