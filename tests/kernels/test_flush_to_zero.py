"""A thread that flushes subnormals gets the same bits from every kernel."""

import numpy as np
import pytest

from ninfer_core.formats import GROUPED
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES, GroupedPlanes
from tests.kernels.floating_mode import flush_to_zero, flushing
from tests.strategies import DTYPES

pytestmark = flushing


def both_ways(run):
    normal = run()
    with flush_to_zero():
        flushed = run()
    assert len(normal) == len(flushed)
    for a, b in zip(normal, flushed, strict=True):
        assert np.array_equal(a, b)


def test_the_mode_is_really_set():
    tiny = np.array([1e-40], np.float32)
    with flush_to_zero():
        product = (tiny * np.float32(1)).view(np.uint32)[0]
    assert product == 0
    assert (tiny * np.float32(1)).view(np.uint32)[0] != 0


def subnormal_sources(dtype):
    """Words all over the range, a third of them subnormal in binary32, some groups wholly so."""
    seed = np.random.default_rng(4)
    fmt = SOURCE_DTYPES[dtype]
    if dtype == "F64":
        values = seed.standard_normal((24, 320)) * 2.0 ** seed.integers(-152, 10, (24, 320))
        values[:8] *= 2.0**-130
        return values.view(np.uint64)
    top = {"BF16": 0x4700, "F16": 0x7000, "F32": 0x47000000}[dtype]
    words = seed.integers(0, top, (24, 320))
    words[8:16] = seed.integers(0, 1 << fmt.fraction_bits, (8, 320))
    words[16:] = np.where(
        seed.random((8, 320)) < 0.5, words[16:], words[16:] & ((1 << fmt.fraction_bits) - 1)
    )
    return (words | seed.integers(0, 2, words.shape) * fmt.sign_bit).astype(DTYPES[dtype])


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize("dtype", list(SOURCE_DTYPES))
def test_encode_scan_and_reconstruct_grouped(fmt, dtype):
    source = subnormal_sources(dtype)

    def run():
        planes = GroupedPlanes.empty(fmt, *source.shape)
        got = cpu.encode(fmt, source, dtype, planes)
        wide, narrow = np.empty(source.shape, np.uint32), np.empty(source.shape, np.uint16)
        cpu.reconstruct_grouped(fmt, source.shape[1], planes, wide)
        cpu.reconstruct_grouped(fmt, source.shape[1], planes, narrow)
        mask = cpu.scan_grouped(fmt, source.shape[1], planes)
        sums = cpu.error_sums_grouped(fmt, source.shape[1], planes, source, dtype)
        assert cpu.parity_grouped(fmt, source.shape[1], planes, source, dtype) == sums
        # A row of subnormals alone is nothing but error, however small.
        groups = planes.scales.size // 24
        stored = planes.part(fmt, 8 * groups, 9 * groups)
        least = cpu.error_sums_grouped(fmt, source.shape[1], stored, source[8:9], dtype)
        if dtype in ("BF16", "F32"):
            assert least.squared_error == least.source_squares > 0
        words = cpu.error_sums_words(source, wide, dtype, "F32")
        counts = [got.rescued, got.clamped, planes.base, planes.high, planes.scales, wide, narrow, mask]
        return [*counts, *map(repr, (sums, least, words))]

    both_ways(run)


def test_fp8_rows():
    codes = np.tile(np.arange(256, dtype=np.uint8), (0x700, 1))
    codes[(codes & 0x7F) == 0x7F] = 0
    scales = np.arange(0x700, dtype=np.uint16)  # every subnormal, and products that straddle the normal range
    codes[0] &= 0x80

    def run():
        wide, narrow = np.empty(codes.shape, np.uint32), np.empty(codes.shape, np.uint16)
        cpu.reconstruct_row(codes, scales, wide)
        cpu.reconstruct_row(codes, scales, narrow)
        return [wide, narrow, cpu.scan_row(codes, scales)]

    both_ways(run)


@pytest.mark.parametrize("divisor", [0x00000001, 0x7F7FFFFF, 0x7E000000])
def test_nvfp4(divisor):
    seed = np.random.default_rng(6)
    codes = seed.integers(0, 256, (8, 64), dtype=np.uint8)
    scales = seed.integers(0, 0x7F, (8, 8), dtype=np.uint8)

    def run():
        cpu.nvfp4_table.cache_clear()
        cpu._nvfp4_table_bf16.cache_clear()
        wide, narrow = np.empty((8, 128), np.uint32), np.empty((8, 128), np.uint16)
        cpu.reconstruct_nvfp4(codes, scales, divisor, wide)
        cpu.reconstruct_nvfp4(codes, scales, divisor, narrow)
        return [wide, narrow, cpu.scan_block_scales(scales)]

    both_ways(run)
