"""A busy machine is no failure: property tests here have no time limit for an example."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
