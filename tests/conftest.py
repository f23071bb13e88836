"""Fixtures that more than one package uses."""

pytest_plugins = ["tests.s3"]
