"""Pages that a policy must not see: those that hold the questions it is measured on."""

import hashlib
import re
from collections.abc import Iterable

from infra.pages.base import PageError

_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_ESCAPE = re.compile("%([0-9a-f]{2})", re.IGNORECASE)
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)


class Deny:
    """Entries are page ids or addresses (a trailing `*` makes one a prefix), `sha256:` of a text, or a document's `hash`.

    `http` and `https` are the same address. Raises `PageError` for an entry that could match nothing.
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
                prefixes.append(_bare(entry[:-1]))
            else:
                names.add(_bare(entry))
        self._names, self._prefixes, self._hashes = frozenset(names), tuple(prefixes), frozenset(hashes)

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes or self._hashes)

    def name(self, id: str) -> bool:
        """Whether a page of this id is denied, whatever it holds."""
        bare = _bare(id)
        return bare in self._names or bare.startswith(self._prefixes)

    def covers(self, id: str, text: str, hash: str) -> bool:
        return self.name(id) or hash in self._names or bool(self._hashes and _sha256(text) in self._hashes)


def _bare(name: str) -> str:
    """Without the scheme and with no escape that could be left out, so that one address has one spelling."""
    return _ESCAPE.sub(_plain, _SCHEME.sub("", name))


def _plain(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character.isascii() and (character.isalnum() or character in "-._~") else escape[0].upper()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
