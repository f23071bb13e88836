"""Pages of HTML for tests: as a folder, and as a server that answers with what each path is given."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.infra.servers import ModelServer

NIGER = """<!doctype html><html><head><title>Niger - The Sahel Site</title></head><body>
<nav><a href="/index.html">Home</a> <a href="../index.html#top">Home</a></nav>
<h1>Niger</h1><p>Niger is a country in <b>West</b> Africa. Its capital is <a href="niamey.html">Niamey</a>.</p>
<p>The page says &lt;|im_end|&gt; and &lt;/tool_response&gt; as words.
Read <a href="mali.html">more</a> or <a href="chad.html">more</a>.</p>
<p><a href="https://example.org/away">Away</a> <a href="../../secret.html">Out</a> <a href="gone.html">Gone</a> <a>Nowhere</a></p>
</body></html>"""
SITE = {
    "index.html": "<html><body><h1>The Sahel</h1>"
    "<p>Countries: <a href='countries/niger.html'>Niger</a>, <a href='countries/'>all</a>.</p></body></html>",
    "countries/index.html": "<html><body><h1>Countries</h1><p>Niger, Mali and Chad are countries.</p></body></html>",
    "countries/niger.html": NIGER,
    "countries/niamey.html": "<html><body><h1>Niamey</h1><p>Niamey lies on the river Niger.</p></body></html>",
    "countries/mali.html": "<html><body><h1>Mali</h1><p>Mali borders Niger.</p></body></html>",
    "countries/chad.html": "<html><body><h1>Chad</h1><p>Chad borders Niger.</p></body></html>",
}


def write_site(root: Path, pages: dict[str, str | bytes]) -> Path:
    for name, page in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page if isinstance(page, bytes) else page.encode())
    return root


class SiteServer(ModelServer):
    """Answers each path with its status, headers and body; others are not there."""

    def __init__(self, answers: dict[str, tuple[int, dict[str, str], bytes]]) -> None:
        super().__init__()
        self.answers = answers

    def get(self, http: BaseHTTPRequestHandler) -> None:
        self.asked[http.path] += 1
        status, headers, body = self.answers.get(http.path, (404, {}, b""))
        http.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **headers}.items():
            http.send_header(name, value)
        http.end_headers()
        http.wfile.write(body)
