"""The one base of errors a user may meet; the command line prints them as one line."""


class TouchstoneError(Exception):
    """Value, reason, way out, in that order, lower case."""
