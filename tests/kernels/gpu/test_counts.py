"""Sums and counts of the kernels for CUDA devices in the simulator: the same digits as the CPU's, which oracles hold."""

import numpy as np
import pytest

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, GROUPED, NVFP4, Q4G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes
from ninfer_core.words import narrow_bf16
from tests.kernels.consumed import random_matrix
from tests.strategies import DTYPES

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
SHAPES = [(3, 70), (2, 256), (1, 4096 + 33)]  # cut lines, one long row, a second tile that is cut


def sources(weights, seed=0):
    """Words of each type near the weights."""
    near = (weights + np.random.default_rng(seed).standard_normal(weights.shape) * 1e-4).astype(np.float32)
    words = near.view(np.uint32)
    return {"BF16": narrow_bf16(words), "F16": near.astype(np.float16).view(np.uint16), "F32": words}


def same_counts(a, b):
    return np.array_equal(a.histogram, b.histogram) and np.array_equal(a.tallies, b.tallies)


@formats
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_error_sums_have_the_same_digits(simulated, fmt, shape):
    matrix = random_matrix(fmt, *shape, seed=shape[1])
    planes = GroupedPlanes(*matrix.planes)
    words = sources(matrix.weights())
    for dtype in words if shape[1] < 4096 else ("BF16",):
        want = cpu.error_sums_grouped(fmt, shape[1], planes, words[dtype], dtype)
        assert simulated.error_sums_grouped(fmt, shape[1], planes, words[dtype], dtype) == want


@pytest.mark.parametrize("pair", [("BF16", "BF16"), ("F16", "F32"), ("F32", "BF16"), ("F32", "F32")])
def test_error_sums_of_words_have_the_same_digits(simulated, pair):
    words = sources(np.random.default_rng(4).standard_normal(4096 + 129 if pair == ("F32", "BF16") else 300))
    x, y = words[pair[0]], np.roll(words[pair[1]], 1)
    assert simulated.error_sums_words(x, y, *pair) == cpu.error_sums_words(x, y, *pair)
    assert simulated.error_sums_words(x[:0], y[:0], *pair) == cpu.error_sums_words(x[:0], y[:0], *pair)


@formats
def test_a_block_is_its_own_encoding_or_it_is_not(simulated, fmt):
    words = sources(np.random.default_rng(8).standard_normal((2, 200)))["F32"]
    planes = GroupedPlanes.empty(fmt, 2, 200)
    cpu.encode(fmt, words, "F32", planes)
    want = cpu.parity_grouped(fmt, 200, planes, words, "F32")
    assert want is not None
    assert simulated.parity_grouped(fmt, 200, planes, words, "F32") == want
    counts, found = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    cpu.statistics_grouped(fmt, 200, planes, counts)
    assert simulated.survey_grouped(fmt, 200, planes, words, "F32", found) == want
    assert same_counts(found, counts)
    for plane in (planes.base, planes.high, planes.scales):
        if plane.size:
            plane[-1] ^= 1
            assert simulated.parity_grouped(fmt, 200, planes, words, "F32") is None
            found = CodeStatistics.empty(fmt)
            assert simulated.survey_grouped(fmt, 200, planes, words, "F32", found) is None
            plane[-1] ^= 1
    words[1, 3] = 0x7FC00000
    assert simulated.parity_grouped(fmt, 200, planes, words, "F32") is None


@formats
@pytest.mark.parametrize("shape", [(3, 70), (2, 256)], ids=str)
def test_counts_of_grouped_codes(simulated, fmt, shape):
    random = np.random.default_rng(shape[1])
    planes = GroupedPlanes(*(plane.copy() for plane in random_matrix(fmt, *shape).planes))
    counts, found = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    for _ in range(2):  # legal words, then any at all, added to what is there
        cpu.statistics_grouped(fmt, shape[1], planes, counts)
        simulated.statistics_grouped(fmt, shape[1], planes, found)
        assert same_counts(found, counts)
        planes.base[:] = random.integers(0, 256, planes.base.size)
        planes.base[:32], planes.high[:16] = 0, 0
        planes.scales[:] = random.integers(0, 1 << 16, planes.scales.size)
        planes.scales[::3] = 0


def test_counts_of_fp8_rows_and_nvfp4(simulated):
    fmt = FP8_E4M3FN_ROW_BF16S
    codes, scales = (plane.copy() for plane in random_matrix(fmt, 5, 300).planes)
    codes[2], scales[4] = 0x80, 0
    counts, found = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    for part in (slice(0, 3), slice(2, 5)):
        cpu.statistics_row(codes[part], scales[part], counts)
        simulated.statistics_row(codes[part], scales[part], found)
    assert same_counts(found, counts)
    nibbles, blocks = (plane.copy() for plane in random_matrix(NVFP4, 128, 64).planes)
    nibbles[:8], blocks[3] = 0x08, 0
    counts, found = CodeStatistics.empty(NVFP4), CodeStatistics.empty(NVFP4)
    cpu.statistics_nvfp4(nibbles, blocks, counts)
    simulated.statistics_nvfp4(nibbles, blocks, found)
    assert same_counts(found, counts)


@pytest.mark.parametrize("dtype", ["BF16", "FP32", "I32"])
def test_counts_of_direct_words(simulated, dtype):
    bits = 16 if dtype == "BF16" else 32
    words = (
        np.random.default_rng(bits)
        .integers(0, 1 << bits, 700, np.uint64)
        .astype(DTYPES.get(dtype, np.uint32))
    )
    infinity = 0x7F80 << (bits - 16)
    words[:6] = 0, 1 << (bits - 1), infinity, infinity + 1, infinity | 1 << (bits - 1), (1 << bits) - 1
    for part in (words, words[:0], words[:2], words[2:6], words[6:7]):
        assert simulated.statistics_direct(part, dtype) == cpu.statistics_direct(part, dtype)


@pytest.mark.parametrize("columns", [130, 256])
def test_short_memory_gives_the_same_digits(simulated, columns):
    fmt, rows = (W8G32_F16S if columns == 130 else Q4G64_F16S), 40
    matrix = random_matrix(fmt, rows, columns)
    planes, words = GroupedPlanes(*matrix.planes), sources(matrix.weights())["BF16"]
    short = simulated.limited(90_000 if columns == 130 else 30_000)
    want = cpu.error_sums_grouped(fmt, columns, planes, words, "BF16")
    assert short.error_sums_grouped(fmt, columns, planes, words, "BF16") == want
    counts, found = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    cpu.statistics_grouped(fmt, columns, planes, counts)
    short.statistics_grouped(fmt, columns, planes, found)
    assert same_counts(found, counts)
