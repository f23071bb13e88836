"""Where code cannot be isolated it does not run."""

import errno
import struct

import pytest

from infra.sandbox import Isolation, Limits, NoIsolation, Sandbox, isolation, seccomp


async def test_a_machine_without_bubblewrap_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.shutil, "which", lambda _: None)
    monkeypatch.setattr(isolation.importlib.util, "find_spec", lambda _: None)
    isolation._bubblewrap.cache_clear()
    with pytest.raises(
        NoIsolation, match=r'isolation=bubblewrap: no program bwrap; install .*, or set isolation to "none"'
    ):
        async with Sandbox():
            pass
    isolation._bubblewrap.cache_clear()


async def test_a_machine_that_forbids_namespaces_is_refused_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = isolation.command

    async def refused(kind: Isolation, limits: Limits) -> isolation.Command:
        make = await refusing(kind, limits)
        return lambda uid: [part.replace("--unshare-all", "--forbidden") for part in make(uid)]

    monkeypatch.setattr("infra.sandbox.service.command", lambda *_: refused(Isolation.BUBBLEWRAP, Limits()))
    with pytest.raises(NoIsolation, match=r"isolation=bubblewrap: bwrap: Unknown option --forbidden; install .*"):
        async with Sandbox():
            pass


@pytest.mark.parametrize(
    ("machine", "audit", "number", "argument", "verdict"),
    [
        ("x86_64", 0xC000003E, 0, 0, 0x7FFF0000),  # read
        ("x86_64", 0xC000003E, 250, 0, 0x00050000 | errno.EPERM),  # keyctl
        ("x86_64", 0xC000003E, 435, 0, 0x00050000 | errno.ENOSYS),  # clone3
        ("x86_64", 0xC000003E, 56, 0x11, 0x7FFF0000),  # clone, as fork does it
        ("x86_64", 0xC000003E, 56, 0x10000011, 0x00050000 | errno.EPERM),  # clone into a user namespace
        ("x86_64", 0xC000003E, 41, 1, 0x7FFF0000),  # a socket of this machine
        ("x86_64", 0xC000003E, 41, 2, 0x00050000 | errno.EAFNOSUPPORT),  # an internet socket
        ("x86_64", 0xC000003E, 206, 0, 0x00050000 | errno.EPERM),  # asynchronous files
        ("x86_64", 0xC000003E, 54, 7, 0x00050000 | errno.EPERM),  # a larger buffer of a socket
        ("x86_64", 0xC000003E, 54, 2, 0x7FFF0000),  # another option of a socket
        ("x86_64", 0xC000003E, 41, 40, 0x00050000 | errno.EAFNOSUPPORT),  # a socket of the virtual machine
        ("x86_64", 0xC000003E, 53, 1, 0x7FFF0000),  # a pair of sockets
        ("x86_64", 0xC000003E, 0x40000000, 0, 0x00050000 | errno.ENOSYS),  # the other numbering
        ("x86_64", 0x40000003, 0, 0, 0x80000000),  # 32-bit calls
        ("aarch64", 0xC00000B7, 219, 0, 0x00050000 | errno.EPERM),
        ("aarch64", 0xC00000B7, 198, 1, 0x7FFF0000),
        ("aarch64", 0xC00000B7, 198, 16, 0x00050000 | errno.EAFNOSUPPORT),
    ],
)
def test_the_filter_decides_by_the_machine_s_own_numbers(
    machine: str, audit: int, number: int, argument: int, verdict: int
) -> None:
    data = struct.pack("IIQQQQ", number, audit, 0, argument, 0, argument)
    steps = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
    at, loaded = 0, 0
    while steps[at][0] != 0x06:
        code, then, otherwise, value = steps[at]
        if code == 0x20:
            (loaded,) = struct.unpack_from("I", data, value)
            at += 1
            continue
        holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
        at += 1 + (then if holds else otherwise)
    assert steps[at][3] == verdict


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(seccomp.UnknownMachine, match="machine=pdp11: no system-call filter; use x86_64 or aarch64"):
        seccomp.program("pdp11")


def test_no_user_id_is_given_twice() -> None:
    used: set[int] = set()
    taken = [isolation.take_uid(used) for _ in range(50)]
    assert len(set(taken)) == 50 or set(taken) == {isolation.NO_UID}
