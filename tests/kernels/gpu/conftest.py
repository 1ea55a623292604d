from collections.abc import Iterator

import pytest

from tests.kernels.gpu.simulator import Simulated


@pytest.fixture(scope="session")
def simulated() -> Iterator[Simulated]:
    """The kernels for CUDA devices in the simulator."""
    processor = Simulated()
    yield processor
    processor.close()
