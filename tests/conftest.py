"""How the tests run: property tests have no time limit each, because a busy machine is no fault of the code."""

from hypothesis import settings

settings.register_profile("goodgain", deadline=None)
settings.load_profile("goodgain")
