"""Scheme level, any rank: groups never cross a row or a leading coordinate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.encoders.maxabs_f16 import encode_group
from ninfer_core.errors import IllegalShape
from ninfer_core.formats import GROUPED
from ninfer_core.quantize import SourceRefused, quantize, reconstruct, scale_shape
from ninfer_core.reconstruct import reconstruct_grouped


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
@given(shape=st.lists(st.integers(1, 3), max_size=3), k=st.integers(1, 140), seed=st.integers(0, 2**32 - 1))
def test_every_row_is_encoded_on_its_own(fmt, shape: list[int], k: int, seed: int):
    full = (*shape, k)
    words = np.random.default_rng(seed).normal(0, 1, full).astype(np.float32).view(np.uint32)
    quantized = quantize(fmt, words, "F32")
    assert quantized.codes.shape == full
    assert quantized.scales.shape == scale_shape(fmt, full) == (*shape, -(-k // fmt.group))
    rows = words.reshape(-1, k)
    values = reconstruct(quantized).reshape(-1, k)
    for row in range(rows.shape[0]):
        for group, start in enumerate(range(0, k, fmt.group)):
            expected = encode_group(fmt, rows[row, start : start + fmt.group].tolist())
            stop = start + len(expected.codes)
            assert tuple(quantized.codes.reshape(-1, k)[row, start:stop].tolist()) == expected.codes
            assert quantized.scales.reshape(rows.shape[0], -1)[row, group] == expected.scale
            assert values[row, start:stop].tolist() == [
                reconstruct_grouped(code, expected.scale) for code in expected.codes
            ]


def test_rank_zero_and_empty_dimensions_have_no_groups():
    for shape in ((), (0,), (2, 0), (0, 64)):
        with pytest.raises(IllegalShape):
            scale_shape(GROUPED[0], shape)


def test_a_refused_group_is_named():
    words = np.ones((2, 2, 70), np.float32)
    words[1, 0, 65] = np.nan
    with pytest.raises(SourceRefused) as error:
        quantize(GROUPED[0], words.view(np.uint32), "F32")
    fault = error.value.fault
    assert (fault.row, fault.group, fault.lane) == (2, 1, 1)
