"""The one base of errors a user may meet; the command line prints them as one line."""

import copyreg
from typing import Any


class TouchstoneError(Exception):
    """Value, reason, way out, in that order, lower case."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes as they are, whatever their constructors take."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]
