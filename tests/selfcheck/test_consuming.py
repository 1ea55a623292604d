"""A self-check of consumers sees a single group that is lost, where nothing beside it is larger."""

import numpy as np
import pytest

from ninfer_core.formats import NVFP4, Q6G64_F16S
from ninfer_core.kernels.host import Cpu
from ninfer_core.kernels.registry import find_kernel
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.selfcheck.run import check_processor


class Losing(Cpu):
    """Takes one subnormal scale of every matrix, its last, for zero."""

    def matvec_grouped(self, fmt, columns, planes, activation, out):
        scales = lost(planes.scales, 0x400)
        super().matvec_grouped(fmt, columns, GroupedPlanes(planes.base, planes.high, scales), activation, out)

    def matvec_nvfp4(self, codes, scales, divisor, activation, out):
        super().matvec_nvfp4(codes, lost(scales, 8), divisor, activation, out)


def lost(scales: np.ndarray, normal: int) -> np.ndarray:
    found = scales.copy().reshape(-1)
    if found.size > 600:  # a small matrix hides nothing
        found[np.flatnonzero((found > 0) & (found < normal))[-1:]] = 0
    return found


@pytest.mark.parametrize("fmt", [Q6G64_F16S, NVFP4], ids=lambda f: f.name)
def test_one_lost_group_is_seen(fmt):
    kernel = find_kernel("matvec", fmt, "BF16", "cpu")
    for seed in range(3):
        (result,) = check_processor(Losing(), (kernel,), level="quick", seed=seed, timer=lambda: 0.0)
        assert result.outcome == "failed"
        assert result.first_mismatch is not None
        assert result.first_mismatch.case.startswith("subnormal scales alone")
