"""Pages that a policy must not see: those that hold the questions it is measured on."""

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import unquote

import httpx

from infra.pages.base import PageError

_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_ESCAPE = re.compile("%([0-9a-f]{2})", re.IGNORECASE)
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_UNSEEN = "".join(map(chr, range(33))) + ";"
"""At the end of a part of a path, what servers leave out."""


class Deny:
    """Entries are page ids or addresses (a trailing `*` makes one a prefix), `sha256:` of a text, or a document's `hash`.

    `http` and `https` are the same address, and so are spellings that a server takes for one: of host, port, escapes, dots and
    slashes, spaces and `;` at an end, an empty query, a fragment. An entry without a query denies its page with any query; one
    with a query denies no other. Raises `PageError` for an entry that could match nothing.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        names, prefixes, hashes = set(), [], set()
        for entry in entries:
            if not entry or entry != entry.strip():
                raise PageError(f"deny={entry!r}: is no page; give an id, an address or `sha256:` and 64 hex digits")
            if entry.lower().startswith("sha256:"):
                found = _SHA256.fullmatch(entry.lower())
                if found is None:
                    raise PageError(f"deny={entry}: is no SHA-256; give `sha256:` and 64 hex digits")
                hashes.add(found[1])
            elif entry.endswith("*"):
                # With a letter more, so that a slash at the end stays.
                prefixes += [_bare(entry[:-1]), *(address[:-1] for address in _addresses(f"{entry[:-1]}x")[:1])]
            else:
                names.update([_bare(entry), *_addresses(entry)[:1]])
        self._names, self._prefixes, self._hashes = frozenset(names), tuple(prefixes), frozenset(hashes)

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes or self._hashes)

    def name(self, id: str) -> bool:
        """Whether a page of this id is denied, whatever it holds."""
        spellings = [_bare(id), *(_addresses(id) if _SCHEME.match(id) else ())]
        return any(spelling in self._names or spelling.startswith(self._prefixes) for spelling in spellings)

    def covers(self, id: str, text: str, hash: str) -> bool:
        return self.name(id) or hash in self._names or bool(self._hashes and _sha256(text) in self._hashes)


def _bare(name: str) -> str:
    """Without the scheme and with no escape that could be left out, so that one address has one spelling."""
    return _ESCAPE.sub(_plain, _SCHEME.sub("", name))


def _addresses(name: str) -> list[str]:
    """`//host/path?query` in the one spelling of the address, without its query, and with a slash; none if it is no address."""
    try:
        url = httpx.URL(name if _SCHEME.match(name) else f"http://{name}")
        host = url.raw_host.decode().lower().rstrip(".")
        port = "" if url.port in (None, 80, 443) else f":{url.port}"
    except (httpx.InvalidURL, ValueError):
        return []
    parts: list[str] = []
    for part in unquote(url.raw_path.decode().partition("?")[0], "latin-1").split("/"):
        part = part.rstrip(_UNSEEN)
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    path = "/".join([f"//{host}{port}", *parts])
    query = _ESCAPE.sub(_plain, url.query.decode()).strip("?&")
    return [f"{path}?{query}" if query else path, path, f"{path}/"]


def _plain(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character.isascii() and (character.isalnum() or character in "-._~") else escape[0].upper()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
