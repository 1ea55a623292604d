"""Settings of the whole suite."""

import os
import signal

import pytest
from hypothesis import settings

from tests import memory, mini_hybrid

# The first example of a kernel pays for its compilation: a deadline would measure the compiler.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# Read by pytest when the first test asks for a folder. Who names a place, here or by --basetemp, is given it.
if (in_memory := memory.folder()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(in_memory))

# A suite that was started in the background ignores SIGINT or SIGHUP, and so would every command that is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: a third of the time tests wait for processes that they started, so one more than processors."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def mini_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> mini_hybrid.MiniHybrid:
    """The source roles and the ranking file of `mini-hybrid/mixed`; nobody writes into them."""
    return mini_hybrid.checkpoint(tmp_path_factory.mktemp("mini-hybrid"))
