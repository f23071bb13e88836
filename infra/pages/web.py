"""Pages of the web: off unless a user asks for `http`.

Invariants: a request goes only to an address that was checked, which is the address then connected to, so a name cannot turn
to another in between; each redirect is a request like the first; fetching a page takes `FETCH_SECONDS` at most, whoever trickles.
"""

import asyncio
import ipaddress
import socket
from collections import OrderedDict
from collections.abc import Sequence

import httpx

from infra.pages.base import Page, PageError, shown_name
from infra.pages.workers import BYTES, Extracted, Extractor, Html
from schemas.base import content_hash

FETCH_SECONDS = 20.0
"""For all of a page's requests together."""
REDIRECTS = 5
KEPT = 256
"""Pages kept, so that the sections of one are of one reading of it."""
_TYPES = ("text/html", "application/xhtml+xml", "text/plain")
_IPV4_INSIDE = ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96")
"""NAT64's, and what `::127.0.0.1` is in: the last 32 bits are an address of IPv4."""
_IPV4_ANYWHERE = ipaddress.ip_network("64:ff9b:1::/48")
"""NAT64's for a site's own use, which says itself where in it the address of IPv4 stands."""


class WebPages:
    """Pages by address. `hosts` are names or addresses that may be reached though they are private."""

    def __init__(self, hosts: Sequence[str] = (), seconds: float = FETCH_SECONDS) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._seconds = seconds
        self._extractor = Extractor()
        self._kept: OrderedDict[str, Page] = OrderedDict()
        # A connection is made for one host name on one address; none is kept for another name on it.
        self._client = httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=seconds,
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={"Accept": ", ".join(_TYPES), "Accept-Encoding": "identity", "User-Agent": "touchstone"},
        )

    async def find(self, name: str) -> Page | None:
        if not name.lower().startswith(("http://", "https://")):
            return None
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        try:
            async with asyncio.timeout(self._seconds):
                html = await self._fetch(_address(name))
        except TimeoutError:
            raise PageError(f"{name}: no answer in {self._seconds:g} s; try another page") from None
        except PageError:
            raise
        except Exception as error:  # httpx lets through whatever a transport raises, groups of errors too
            raise PageError(f"{name}: {error or type(error).__name__}; try another page") from error
        if html is None:
            return None
        page = _page(html.url, await self._extractor.read(html))
        self._kept[name] = self._kept[page.id] = page
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return page

    async def close(self) -> None:
        await self._client.aclose()
        await asyncio.to_thread(self._extractor.close)

    async def _fetch(self, url: httpx.URL) -> Html | None:
        """What is at the address or where it leads; `None` where nothing is."""
        for _ in range(REDIRECTS + 1):
            ip = await self._checked(url)
            request = self._client.build_request(
                "GET",
                url.copy_with(host=ip),
                headers={"Host": url.netloc.decode()},
                extensions={"sni_hostname": url.raw_host.decode()},
            )
            response = await self._client.send(request, stream=True)
            try:
                if response.has_redirect_location:
                    url = _address(str(url.join(response.headers["location"])))
                    continue
                return await _body(url, response)
            finally:
                await response.aclose()
        raise PageError(f"{url}: is the {REDIRECTS + 1}. address in a row that leads to another; try another page")

    async def _checked(self, url: httpx.URL) -> str:
        """An address to connect to. Raises `PageError` if the host has one that must not be reached."""
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.raw_host, port, type=socket.SOCK_STREAM)
        ips = [ipaddress.ip_address(str(address[4][0]).partition("%")[0]) for address in found]
        if url.host.lower() not in self._hosts and not all(map(_is_public, ips)):
            raise PageError(f"{url}: is a private address; open another, or have its host allowed")
        return str(ips[0])


async def _body(url: httpx.URL, response: httpx.Response) -> Html | None:
    if response.status_code in (404, 410):
        return None
    if response.status_code != 200:
        raise PageError(f"{url}: answers with status {response.status_code}; try another page")
    type, _, rest = response.headers.get("content-type", "").partition(";")
    if type.strip().lower() not in _TYPES:
        raise PageError(f"{url}: is {shown_name(type) or 'of no type'}, not HTML or plain text; try another page")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise PageError(f"{url}: is compressed though it was asked not to be; try another page")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BYTES:
            raise PageError(f"{url}: is longer than {BYTES >> 20} MiB; not read")
    return Html(str(url), bytes(body), _charset(rest), plain=type.strip().lower() == "text/plain")


def _page(url: str, found: Extracted) -> Page:
    return Page(
        url, found.title or shown_name(url), url, found.text, content_hash(found.text), found.links, listed=True
    )


def _address(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        raise PageError(f"{text}: is no address; {error}") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise PageError(f"{text}: only http and https addresses without a name and password are opened")
    if url.port is not None and not 0 < url.port < 2**16:
        raise PageError(f"{text}: no port {url.port}; ports go from 1 to 65535")
    return url


def _charset(parameters: str) -> str:
    name, _, value = parameters.strip().partition("=")
    return value.strip(" \"'") if name.strip().lower() == "charset" else ""


def _is_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(ip, ipaddress.IPv6Address):
        last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        inner = ip.ipv4_mapped or ip.sixtofour or (last if any(ip in network for network in _IPV4_INSIDE) else None)
        if inner is not None:
            return _is_public(inner)
        if ip in _IPV4_ANYWHERE:
            return False
    return ip.is_global and not ip.is_multicast
