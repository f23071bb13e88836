"""Fixtures that more than one package uses."""

pytest_plugins = ["tests.engines", "tests.prefects", "tests.s3"]
