"""One Prefect server for the session, with a home of its own: no test ever touches a user's server."""

import os
import tempfile
from collections.abc import Iterator

import pytest

os.environ |= {
    "PREFECT_HOME": tempfile.mkdtemp(prefix="touchstone-prefect-"),
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # The server's stop prints hundreds of lines of cancelled tasks otherwise.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    # Nothing listens here, so a test without the fixture fails at once.
    "PREFECT_API_URL": "http://127.0.0.1:9/api",
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=240):
        yield
