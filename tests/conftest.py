"""Settings of the whole suite."""

from hypothesis import settings

# The first example of a kernel pays for its compilation: a deadline would measure the compiler.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
