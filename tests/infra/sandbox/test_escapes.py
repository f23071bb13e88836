"""The escape drill, and that it would notice."""

from bench import escapes
from bench.attacks import ATTACKS, FORGERIES
from infra.sandbox import Isolation, Sandbox
from pipeline import grading

HARMLESS = {
    "udp to the host's loopback", "socket of the virtual machine", "environment of the host's processes", "host file",
    "what is not Python's", "files of a neighbour",
"name of the host", "no filter", "devices", "sysfs and control groups",
}  # fmt: skip


async def test_nothing_escapes_and_nothing_is_left_over() -> None:
    grading.close()
    before = escapes.Baseline.now()
    found = [(name, how) async for name, how in escapes.drill()]
    assert len(found) == len(ATTACKS) + len(FORGERIES) > 30
    assert [(name, how) for name, how in found if how] == []
    grading.close()
    leaks = before.leaks()
    assert (leaks.zombies, leaks.processes, leaks.descriptors) == (0, 0, 0)


async def test_the_drill_notices_what_gets_out_where_nothing_is_isolated() -> None:
    """With attacks that do no harm: where code runs unprotected, each of them succeeds."""
    with escapes.Host() as host:
        async with Sandbox(Isolation.NONE, pool=1) as sandbox:
            for attack in ATTACKS:
                if attack.name in HARMLESS:
                    assert await escapes.escaped(sandbox, host, attack), attack.name
