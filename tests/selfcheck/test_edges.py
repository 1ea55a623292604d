"""Encoders of FP8 rows are asked for ties between codes, and the table of quotients that reconstructions of NVFP4 are held to."""

from typing import Any

import numpy as np
import pytest

from ninfer_core.kernels.host import Cpu
from ninfer_core.kernels.registry import KERNELS
from ninfer_core.oracles.encoding import rounded32, rounded_e4m3fn
from ninfer_core.reconstruct import reconstruct_nvfp4
from ninfer_core.selfcheck.reconstruction import _table
from ninfer_core.selfcheck.run import check_processor
from ninfer_core.words import expand_bf16, values_of_binary32


@pytest.mark.parametrize("divisor", [1, 0x7FFFFF, 0x800001, 0x3F800000, 0x40490FDB, 0x43FFFFFF, 0x7F7FFFFF])
def test_quotients_are_those_of_exact_arithmetic(divisor: int) -> None:
    random = np.random.default_rng(divisor)
    table = _table(divisor)
    for scale, code in zip(random.integers(0, 0x7F, 60), random.integers(0, 8, 60), strict=True):
        assert table[scale, code] == reconstruct_nvfp4(int(code), int(scale), divisor)


def test_a_quotient_for_the_product_with_the_reciprocal_is_caught() -> None:
    class Dividing(Cpu):
        """Divides lanes by the multiplier."""

        def encode_rows(self, source: Any, dtype: str, largest: Any, codes: Any, scales: Any) -> Any:
            result = super().encode_rows(source, dtype, largest, codes, scales)
            some = np.flatnonzero(scales)
            lanes = np.abs(values_of_binary32(source[some]))
            with np.errstate(all="ignore"):  # sources that are refused
                quotients = lanes / values_of_binary32(expand_bf16(scales[some]))[:, None]
                rounded = rounded_e4m3fn(np.minimum(values_of_binary32(rounded32(quotients)), 448.0))
            codes[some] = rounded | codes[some] & 0x80
            return result

    kernel = KERNELS["encode.FP8_E4M3FN_ROW_BF16S.F32.cpu"]
    (result,) = check_processor(Dividing(), (kernel,), level="quick", seed=0, timer=lambda: 0.0)
    assert result.first_mismatch is not None
    assert result.first_mismatch.case == "edges"
    assert result.first_mismatch.where.startswith("code at row")
