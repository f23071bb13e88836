"""Pages of the web: what is asked, what is not, and when a server is given up."""

import contextlib
import ipaddress
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.pages import workers
from infra.pages.base import PageError
from infra.pages.web import WebPages, _address, _is_public
from tests.infra.servers import DribblingServer, running
from tests.infra.sites import SITE, SiteServer


class TricklingPage(DribblingServer):
    """Says that it is HTML, and never comes to an end of it."""

    def get(self, http: BaseHTTPRequestHandler) -> None:
        http.send_response(200)
        http.send_header("Content-Type", "text/html")
        http.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                http.wfile.write(self.chunk)
                time.sleep(self.pause_s)


@pytest.fixture
def site() -> Iterator[tuple[SiteServer, str]]:
    server = SiteServer({f"/{name}": (200, {}, page.encode()) for name, page in SITE.items()})
    with running(server) as address:
        yield server, address.removesuffix("/v1")


async def test_a_page_of_the_web_is_found_by_address_with_absolute_links(site: tuple[SiteServer, str]) -> None:
    server, address = site
    pages = WebPages(["127.0.0.1"])
    page = await pages.find(f"{address}/countries/niger.html#top")
    assert page is not None and (page.id, page.title) == (f"{address}/countries/niger.html", "Niger")
    assert f"{address}/countries/niamey.html" in {link.target for link in page.links}
    assert await pages.find(f"{address}/gone.html") is None
    assert await pages.find("Niger") is None
    assert await pages.find(page.id) == page and server.asked["/countries/niger.html"] == 1
    await pages.close()


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:{port}/index.html", "http://localhost:{port}/", "http://[::1]:{port}/", "http://0.0.0.0:{port}/",
     "http://2130706433:{port}/", "http://0x7f.1:{port}/", "http://[::ffff:127.0.0.1]:{port}/", "http://169.254.169.254/",
     "http://10.0.0.1/", "http://[fe80::1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::7f00:1]/",
     "http://[::127.0.0.1]:{port}/", "http://[::a00:1]/"],
)  # fmt: skip
async def test_private_addresses_are_not_asked(address: str, site: tuple[SiteServer, str]) -> None:
    server, base = site
    pages = WebPages()
    with pytest.raises(PageError, match="private address"):
        await pages.find(address.format(port=base.rpartition(":")[2]))
    assert not server.asked
    await pages.close()


@pytest.mark.parametrize(
    "target", ["http://localhost:{port}/index.html", "http://169.254.169.254/latest", "//[::1]:{port}/"]
)
async def test_a_redirect_is_checked_like_a_request(target: str, site: tuple[SiteServer, str]) -> None:
    server, base = site
    server.answers["/r"] = 302, {"Location": target.format(port=base.rpartition(":")[2])}, b""
    pages = WebPages(["127.0.0.1"])
    with pytest.raises(PageError, match="private address"):
        await pages.find(f"{base}/r")
    assert server.asked == {"/r": 1}
    await pages.close()


async def test_a_redirect_leads_to_the_page_and_a_circle_of_them_ends(site: tuple[SiteServer, str]) -> None:
    server, base = site
    server.answers["/r"] = 301, {"Location": "/index.html"}, b""
    server.answers["/round"] = 302, {"Location": "round"}, b""
    server.answers["/file"] = 302, {"Location": "file:///etc/passwd"}, b""
    pages = WebPages(["127.0.0.1"])
    page = await pages.find(f"{base}/r")
    assert page is not None and page.id == f"{base}/index.html"
    for name in ("round", "file"):
        with pytest.raises(PageError):
            await pages.find(f"{base}/{name}")
    assert server.asked["/round"] == 6
    await pages.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, {"Content-Type": "application/pdf"}, b"%PDF"), "is application/pdf, not HTML"),
        ((200, {"Content-Type": ""}, b"x"), "of no type"),
        ((200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"), "compressed"),
        ((500, {}, b"oh"), "status 500"),
        ((200, {}, b"x" * (workers.BYTES + 1)), "longer than 5 MiB"),
        ((200, {"Content-Length": "999"}, b"short"), "try another page"),
    ],
)
async def test_what_is_no_page_says_why(
    answer: tuple[int, dict[str, str], bytes], why: str, site: tuple[SiteServer, str]
) -> None:
    server, base = site
    server.answers["/x"] = answer
    pages = WebPages(["127.0.0.1"], seconds=2.0)
    with pytest.raises(PageError, match=why):
        await pages.find(f"{base}/x")
    await pages.close()


async def test_a_server_that_trickles_is_given_up_at_the_total_deadline() -> None:
    pages = WebPages(["127.0.0.1"], seconds=0.5)
    with running(TricklingPage(b"<p>", 0.05)) as address:
        start = time.monotonic()
        with pytest.raises(PageError, match=r"no answer in 0\.5 s"):
            await pages.find(address.removesuffix("/v1"))
        assert time.monotonic() - start < 5
    await pages.close()


async def test_plain_text_is_shown_as_it_is(site: tuple[SiteServer, str]) -> None:
    server, base = site
    server.answers["/x"] = 200, {"Content-Type": "text/plain; charset=iso-8859-1"}, "<b>é</b>".encode("latin-1")
    pages = WebPages(["127.0.0.1"])
    page = await pages.find(f"{base}/x")
    assert page is not None and (page.text, page.title, page.links) == ("<b>é</b>", f"{base}/x", ())
    await pages.close()


@pytest.mark.parametrize("port", [0, 65536, 99999, 10**9])
async def test_a_port_that_is_none_is_no_page(port: int) -> None:
    pages = WebPages(["localhost"])
    with pytest.raises(PageError, match=r"ports go from 1 to 65535|is no address"):
        await pages.find(f"http://localhost:{port}/")
    await pages.close()


async def test_whatever_a_connection_raises_is_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> httpx.Response:
        raise ExceptionGroup("multiple connection attempts failed", [OverflowError("port must be 0-65535")])

    pages = WebPages(["localhost"])
    monkeypatch.setattr(pages._client, "send", broken)
    with pytest.raises(PageError, match="try another page"):
        await pages.find("http://localhost/")
    await pages.close()


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_is_an_address_or_a_page_error(text: str) -> None:
    for prefix in ("http://", "http://a/", "https://[", ""):
        with contextlib.suppress(PageError):
            assert isinstance(_address(prefix + text), httpx.URL)


def test_only_addresses_of_the_open_internet_are_public() -> None:
    private = (
        "127.0.0.1 10.1.1.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0 ::1 fe80::1 fc00::1 2002:7f00:1::"
    )
    assert not any(_is_public(ipaddress.ip_address(ip)) for ip in (*private.split(), "224.0.0.1", "::ffff:10.0.0.1"))
    inside = "64:ff9b::7f00:1 64:ff9b:1::7f00:1 64:ff9b:1:7f00:0:100:808:808 ::127.0.0.1 ::ffff:127.0.0.1 ::"
    assert not any(_is_public(ipaddress.ip_address(ip)) for ip in inside.split())
    public = "8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 ::8.8.8.8 2002:808:808::"
    assert all(_is_public(ipaddress.ip_address(ip)) for ip in public.split())
