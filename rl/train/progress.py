"""What a run says of itself while it goes on."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is. `steps` and `of_minutes` are its limits, absent where it has none.

    Every attempt that was ever admitted is trained, dropped, suspended (saved, waits for a slot), in flight, or waits for
    the rest of its group or of its batch.
    """

    stage: str
    step: int
    steps: int | None
    minutes: float
    of_minutes: float | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the last step, `<what>/<population>`."""
    in_flight: int = 0
    suspended: int = 0
    waiting: int = 0
    admitted: int = 0
    trained: int = 0
    dropped: int = 0


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """A `Watch` that does not look."""


def every(seconds: float, watch: Watch, clock: Callable[[], float] = time.monotonic) -> Watch:
    """A `Watch` that looks once in so many seconds, and at every new stage."""
    said: tuple[str, float] | None = None

    def now_and_then(progress: Progress) -> None:
        nonlocal said
        now = clock()
        if said is None or said[0] != progress.stage or now - said[1] >= seconds:
            said = progress.stage, now
            watch(progress)

    return now_and_then
