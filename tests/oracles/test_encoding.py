"""The encoders over whole matrices give what the integer oracles give, group by group."""

import numpy as np
import pytest

from ninfer_core.encoders import maxabs_bf16s, maxabs_f16
from ninfer_core.formats import GROUPED, GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.oracles.encoding import encode_grouped, encode_rows, rounded16, rounded_e4m3fn
from ninfer_core.selfcheck.drawn import source_fp8, source_rows, widened
from ninfer_core.words import BINARY16, E4M3FN, finite_value, is_finite


@pytest.mark.parametrize("dtype", SOURCE_DTYPES)
@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
def test_groups(fmt: GroupedFormat, dtype: str) -> None:
    source = source_rows(np.random.default_rng([7, *dtype.encode()]), fmt, dtype, 4, 150)
    found = encode_grouped(fmt, widened(dtype, source))
    rows = maxabs_f16.encode_rows(fmt, source.tolist(), SOURCE_DTYPES[dtype])
    assert found.codes.tolist() == [[code for group in row for code in group.codes] for row in rows]
    assert found.scales.tolist() == [[group.scale for group in row] for row in rows]
    assert found.rescued == sum(group.rescued for row in rows for group in row)
    assert found.clamped == sum(group.clamped for row in rows for group in row)


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_rows(dtype: str) -> None:
    source = source_fp8(np.random.default_rng([7, *dtype.encode()]), dtype, 12, 60)
    found = encode_rows(widened(dtype, source))
    rows = maxabs_bf16s.encode_rows(source.tolist(), SOURCE_DTYPES[dtype])
    assert found.codes.tolist() == [[*row.codes] for row in rows]
    assert found.scales.tolist() == [row.scale for row in rows]
    assert found.clamped == sum(row.clamped for row in rows)


def test_every_binary16_and_e4m3fn_word_and_every_tie_between_two() -> None:
    for fmt, rounded in ((BINARY16, rounded16), (E4M3FN, rounded_e4m3fn)):
        words = [word for word in range(fmt.sign_bit) if is_finite(fmt, word)]
        values = np.array([float(finite_value(fmt, word)) for word in words])
        assert rounded(values).tolist() == words
        ties = (values[:-1] + values[1:]) / 2
        assert rounded(ties).tolist() == [word + word % 2 for word in words[:-1]]
