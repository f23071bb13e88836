"""A real S3 server in its own process, for the session."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def moto_server() -> Iterator[str]:
    """Its endpoint. It binds a free port itself and says which, so that two sessions never meet."""
    with tempfile.NamedTemporaryFile("w+") as log:  # a pipe that nobody reads would stop it after some hundred requests
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", Path(log.name).read_text())):
                assert process.poll() is None and time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.05)
            yield found[0]
        finally:
            process.kill()
            process.wait()


def aws_environment(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    with moto_server() as endpoint:
        before = {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
        for key in before:
            del os.environ[key]
        os.environ.update(aws_environment(endpoint))
        yield endpoint
        for key in aws_environment(endpoint):
            del os.environ[key]
        os.environ.update(before)


@pytest.fixture
def bucket(s3_server: str, request: pytest.FixtureRequest) -> str:
    """The URL of an empty bucket of this test's own."""
    import boto3

    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-") + f"-{os.urandom(3).hex()}"
    boto3.client("s3").create_bucket(Bucket=name)
    return f"s3://{name}"
