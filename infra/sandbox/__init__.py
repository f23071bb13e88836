"""Where code that nobody vouches for runs: one service, many isolated sessions, no container per call.

`service` keeps the sessions, `box` is one interpreter as seen from outside, `child` the same from inside; `isolation`, `seccomp`,
`launch` and `limits` say what it may see and take; `cases` runs a function on many arguments for a grader.
"""

from infra.sandbox.isolation import Isolation, NoIsolation
from infra.sandbox.limits import Limits
from infra.sandbox.outcome import Outcome, Ran, cut
from infra.sandbox.service import Closed, JournalFull, Sandbox, SessionLost

__all__ = [
    "Closed",
    "Isolation",
    "JournalFull",
    "Limits",
    "NoIsolation",
    "Outcome",
    "Ran",
    "Sandbox",
    "SessionLost",
    "cut",
]
