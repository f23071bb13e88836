"""What one session may take of a machine."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory` is what all processes of a session may have resident together, in bytes, `/tmp` and sockets included; one process's
    address space may be `HEADROOM` larger. `processes` counts threads too. `scratch` is the size of its `/tmp`, `file` that of one
    file, `written` that of a call's output before the call is ended; `shown` is how many characters of it a caller gets. `journal`
    is the code, in bytes, from which a session can be made again, `replay` the seconds that this may take. `cpu` is the processor
    time of one process in its life.
    """

    seconds: float = 10.0
    memory: int = 512 * MIB
    processes: int = 32
    cpu: int = 600
    scratch: int = 32 * MIB
    file: int = 32 * MIB
    descriptors: int = 64
    written: int = 1 * MIB
    shown: int = 20_000
    journal: int = 1 * MIB
    replay: float = 60.0

    HEADROOM = 1024 * MIB

    def of_a_process(self) -> dict[str, int]:
        """Resource limits by name; the first process of the namespace counts as one more."""
        return {
            "RLIMIT_AS": self.memory + self.HEADROOM,
            "RLIMIT_CPU": self.cpu,
            "RLIMIT_NPROC": self.processes + 1,
            "RLIMIT_FSIZE": self.file,
            "RLIMIT_NOFILE": self.descriptors,
            "RLIMIT_CORE": 0,
        }
