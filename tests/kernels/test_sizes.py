"""Arrays that do not go together are refused before compiled code looks past the end of one."""

import numpy as np
import pytest

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, Q4G64_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes

CODES = np.zeros((3, 64), np.uint8)


@pytest.mark.parametrize(
    "scales", [np.zeros(2, np.uint16), np.zeros(4, np.uint16), np.zeros((3, 1), np.uint16)]
)
def test_rows_have_a_scale_each(scales: np.ndarray):
    for ask in (
        lambda: cpu.scan_row(CODES, scales),
        lambda: cpu.statistics_row(CODES, scales, CodeStatistics.empty(FP8_E4M3FN_ROW_BF16S)),
        lambda: cpu.reconstruct_row(CODES, scales, np.empty((3, 64), np.uint32)),
    ):
        with pytest.raises(ValueError, match="3 rows need as many scales"):
            ask()


def test_eight_bytes_of_codes_have_a_scale():
    for ask in (
        lambda: cpu.statistics_nvfp4(CODES, np.zeros(25, np.uint8), CodeStatistics.empty(NVFP4)),
        lambda: cpu.reconstruct_nvfp4(CODES, np.zeros(25, np.uint8), 0x3F800000, np.empty(384, np.uint32)),
    ):
        with pytest.raises(ValueError, match="192 code bytes do not go with 25 scales"):
            ask()


def test_no_columns_are_no_rows():
    planes = GroupedPlanes.empty(Q4G64_F16S, 1, 128)
    with pytest.raises(ValueError, match="rows of 0 columns"):
        cpu.scan_grouped(Q4G64_F16S, 0, planes)
