from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from ninfer_core.kernels.devices import Device, devices
from tests.kernels.gpu.simulator import Simulated


@pytest.fixture(scope="session")
def simulated() -> Iterator[Simulated]:
    """The kernels for CUDA devices in the simulator."""
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed: there is none but for Linux")
    processor = Simulated()
    yield processor
    processor.close()


@pytest.fixture(scope="session")
def board() -> Device:
    """The first CUDA device."""
    here = devices()
    if len(here) == 1:
        pytest.skip(f"there is no CUDA device here, only {here[0].model}")
    return here[1]
