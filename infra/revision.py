"""Which code made something: a hash of the sources, the same in a checkout, an archive or a container."""

import hashlib
from functools import cache

from infra.settings import ROOT

PACKAGES = ("schemas", "infra", "pipeline", "rl", "flows")


@cache
def code_revision() -> str:
    """`src-` and 12 hex digits over the path and content of every Python file of the project's packages."""
    sha = hashlib.sha256()
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        sha.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        sha.update(hashlib.sha256(path.read_bytes()).digest())
    return f"src-{sha.hexdigest()[:12]}"
