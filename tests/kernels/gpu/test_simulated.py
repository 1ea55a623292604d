"""The kernels for CUDA devices in the simulator: stored vectors, the integer oracles, and the CPU's kernels."""

import numpy as np
import pytest

from ninfer_core.errors import DeviceFailed
from ninfer_core.formats import FORMATS, GROUPED, Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.kernels.registry import NoKernel
from ninfer_core.kernels.values import CodeStatistics, EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_nvfp4, reconstruct_row
from ninfer_core.words import narrow_bf16
from tests.kernels import oracles
from tests.kernels.test_encode import assert_planes, reference
from tests.vectors import load

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
WIDTHS = {
    Q4G64_F16S: 130,
    Q5G64_F16S: 256,
    Q6G64_F16S: 72,
    W8G32_F16S: 33,
}  # cut octets, whole lines, cut groups


def filled(fmt, rows, columns):
    planes = GroupedPlanes.empty(fmt, rows, columns)
    for plane in (planes.base, planes.high, planes.scales):
        plane.fill(0xAA)  # whatever is not written shows
    return planes


def drawn(fmt, rows, columns, seed=0):
    """Planes of any bits with legal scales, zero among them."""
    random = np.random.default_rng(seed)
    planes = GroupedPlanes.empty(fmt, rows, columns)
    planes.base[:], planes.high[:] = (
        random.integers(0, 256, plane.size, np.uint8) for plane in (planes.base, planes.high)
    )
    planes.scales[:] = random.integers(1, 0x7C00, planes.scales.size)
    planes.scales[::5] = np.arange(planes.scales[::5].size) % 3
    return planes


@formats
def test_stored_groups_of_every_category_in_one_row(simulated, fmt):
    by_category = {}
    for case in load.encode_cases(fmt):
        if case.scale is not None:
            by_category.setdefault(case.category, []).append(case)
    cases = [case for some in by_category.values() for case in some[:4]]
    source = np.zeros((1, len(cases) * fmt.group), np.uint32)
    for place, case in enumerate(cases):
        source[0, place * fmt.group : place * fmt.group + len(case.words)] = case.words
    planes = filled(fmt, *source.shape)
    counts = simulated.encode(fmt, source, "F32", planes)
    assert planes.scales[: len(cases)].tolist() == [case.scale for case in cases]
    for place, case in enumerate(cases):
        got = [oracles.code_at(fmt, planes, place, lane) for lane in range(fmt.group)]
        assert got == [*case.codes, *[0] * (fmt.group - len(case.codes))], case.category
    assert counts == reference(fmt, source, "F32")[0]
    assert counts.rescued
    assert counts.clamped


@formats
@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_encode_equals_the_oracle(simulated, fmt, dtype):
    columns = WIDTHS[fmt]
    random = np.random.default_rng(3)
    values = random.standard_normal((3, columns)) * 2.0 ** random.integers(-28, 12, (3, columns))
    words = values.astype(np.float32).view(np.uint32)
    source = {
        "BF16": (words >> 16).astype(np.uint16),
        "F16": (words.view(np.float32) / 8).astype(np.float16).view(np.uint16),
        "F32": words,
    }[dtype]
    source[1] = 0
    planes = filled(fmt, *source.shape)
    counts, expected = reference(fmt, source, dtype)
    assert simulated.encode(fmt, source, dtype, planes) == counts
    assert_planes(planes, expected)


def test_groups_that_are_refused(simulated):
    fmt = Q5G64_F16S
    for case in load.encode_cases(fmt):
        if case.scale is None:
            source = np.zeros((2, 64 + len(case.words)), np.uint32)
            source[0], source[1, 64:] = 0x3F800000, case.words
            found = simulated.encode(fmt, source, "F32", filled(fmt, *source.shape))
            assert isinstance(found, EncodeFault), case.category
            assert found == reference(fmt, source, "F32")[0]


@formats
def test_reconstruction_equals_the_oracle(simulated, fmt):
    rows, columns = 2, WIDTHS[fmt]
    planes = drawn(fmt, rows, columns)
    wide, narrow = np.empty((rows, columns), np.uint32), np.empty((rows, columns), np.uint16)
    simulated.reconstruct_grouped(fmt, columns, planes, wide)
    simulated.reconstruct_grouped(fmt, columns, planes, narrow)
    for group in oracles.groups(fmt, columns, planes):
        lanes = slice(group.index * fmt.group, group.index * fmt.group + group.logical)
        expected = [reconstruct_grouped(code, group.scale) for code in group.codes[: group.logical]]
        assert wide[group.row, lanes].tolist() == expected
    assert np.array_equal(narrow, narrow_bf16(wide))


def test_every_fp8_code_under_scales_of_every_kind(simulated):
    codes = np.tile(np.arange(256, dtype=np.uint8), (7, 1))
    scales = np.array([0, 1, 0x0080, 0x04FF, 0x3F80, 0x3FFF, 0x7F7F], np.uint16)
    wide, narrow = np.empty((7, 256), np.uint32), np.empty((7, 256), np.uint16)
    simulated.reconstruct_row(codes, scales, wide)
    simulated.reconstruct_row(codes, scales, narrow)
    for row, scale in enumerate(scales):
        for code in range(256):
            nan = code & 0x7F == 0x7F
            expected = 0x7FC00000 | code >> 7 << 31 if nan else reconstruct_row(code, int(scale))
            assert wide[row, code] == expected
    assert np.array_equal(narrow, narrow_bf16(wide))


def test_every_nvfp4_code_under_every_scale(simulated):
    pairs = np.arange(0x10, 0x110, 0x22, dtype=np.uint8)  # 0x10, 0x32, ... 0xfe
    codes, scales = np.tile(pairs, (127, 1)), np.arange(127, dtype=np.uint8)
    for divisor in (0x3F800000, 0x00000003):
        wide, narrow = np.empty(codes.size * 2, np.uint32), np.empty(codes.size * 2, np.uint16)
        simulated.reconstruct_nvfp4(codes, scales, divisor, wide)
        simulated.reconstruct_nvfp4(codes, scales, divisor, narrow)
        words = np.stack([codes & 15, codes >> 4], axis=-1).reshape(-1, 16)
        expected = [
            [reconstruct_nvfp4(int(word), int(scale), divisor) for word in row]
            for row, scale in zip(words, scales, strict=True)
        ]
        assert np.array_equal(wide, np.array(expected, np.uint32).reshape(-1))
        assert np.array_equal(narrow, narrow_bf16(wide))
    with pytest.raises(ValueError, match="divisor"):
        simulated.reconstruct_nvfp4(codes, scales, 0, wide)


@formats
def test_scans_see_each_fault_and_no_other(simulated, fmt):
    columns = WIDTHS[fmt]
    sound = filled(fmt, 2, columns)
    assert isinstance(simulated.encode(fmt, np.ones((2, columns), np.uint32), "F32", sound), EncodeCounts)
    assert simulated.scan_grouped(fmt, columns, sound) == 0
    per_row = groups_per_row(fmt, columns)
    last = per_row + (columns - 1) // fmt.group
    faults = [("scales", last, 0x7C00), ("scales", last, 0), ("scales", 0, 0x8000), ("base", last * 32, 0x80)]
    if columns % 128:
        faults += [("base", 2 * per_row * 32 - 1, 0x10), ("scales", 2 * per_row - 1, 1)]
    sound.base[last * 32] |= 1
    for plane, place, word in faults:
        broken = GroupedPlanes(sound.base.copy(), sound.high.copy(), sound.scales.copy())
        getattr(broken, plane)[place] = word
        expected = oracles.scan(fmt, columns, broken)
        assert simulated.scan_grouped(fmt, columns, broken) == expected
    random = drawn(fmt, 2, columns)
    assert simulated.scan_grouped(fmt, columns, random) == oracles.scan(fmt, columns, random) != 0


def test_scans_of_rows_and_block_scales(simulated):
    codes, scales = np.full((3, 70), 0x7E, np.uint8), np.array([1, 0x7F7F, 0x3F80], np.uint16)
    assert simulated.scan_row(codes, scales) == 0
    for change, mask in (((2, 69, 0xFF), 4), ((0, 0, 0x7F), 4)):
        broken = codes.copy()
        broken[change[:2]] = change[2]
        assert simulated.scan_row(broken, scales) == mask
    assert simulated.scan_row(codes, np.array([0x7F80, 1, 1], np.uint16)) == 1
    assert simulated.scan_row(codes, np.array([1, 1, 0], np.uint16)) == 2
    assert simulated.scan_row(codes & 0x80, np.zeros(3, np.uint16)) == 0
    words = np.full(300, 0x7E, np.uint8)
    assert simulated.scan_block_scales(words) == 0
    words[299] = 0x7F
    assert simulated.scan_block_scales(words) == 1


@pytest.mark.parametrize("columns", [130, 256])
def test_short_memory_gives_the_same_words(simulated, columns):
    fmt, rows = Q6G64_F16S, 5
    source = np.random.default_rng(1).integers(0x3F00, 0x4000, (rows, columns)).astype(np.uint16)
    little, whole, parts = simulated.limited(4_000), filled(fmt, rows, columns), filled(fmt, rows, columns)
    if columns % 128 == 0:  # one run of lines is cut at tiles of 32
        source = np.tile(source, 4).reshape(1, -1)
        rows, columns = source.shape
        whole, parts = filled(fmt, rows, columns), filled(fmt, rows, columns)
        little = simulated.limited(13_000)
    counts = simulated.encode(fmt, source, "BF16", whole)
    assert little.encode(fmt, source, "BF16", parts) == counts
    assert_planes(parts, whole)
    source[-1, -1] = 0x7F80
    fault = simulated.encode(fmt, source, "BF16", parts)
    assert fault == little.encode(fmt, source, "BF16", parts) == reference(fmt, source, "BF16")[0]


def test_a_row_that_does_not_fit_is_no_answer(simulated):
    planes = filled(Q4G64_F16S, 1, 130)
    with pytest.raises(DeviceFailed, match="one row does not fit"):
        simulated.limited(500).encode(Q4G64_F16S, np.zeros((1, 130), np.uint16), "BF16", planes)


def test_what_the_whitelist_lacks_is_refused(simulated):
    planes = filled(Q4G64_F16S, 1, 130)
    with pytest.raises(NoKernel, match="F64"):
        simulated.encode(Q4G64_F16S, np.zeros((1, 130), np.uint64), "F64", planes)
    with pytest.raises(NoKernel, match="FP8"):
        simulated.largest_magnitudes(np.zeros((1, 130), np.uint16), "BF16")
    with pytest.raises(NoKernel, match="F16"):
        simulated.statistics_direct(np.zeros(3, np.uint16), "F16")
    with pytest.raises(NoKernel):
        simulated.same_bytes(planes.base, planes.base)


def test_words_and_sizes_that_do_not_go_together_are_refused(simulated):
    """A device that reads past an array's end may be gone for the whole process."""
    planes, words = filled(Q4G64_F16S, 1, 130), np.zeros((1, 130), np.int16)
    given = (Q4G64_F16S, 130, planes, words, "BF16")
    for refused in (
        lambda: simulated.encode(Q4G64_F16S, words, "BF16", planes),
        lambda: simulated.error_sums_grouped(*given),
        lambda: simulated.parity_grouped(*given),
    ):
        with pytest.raises(ValueError, match="cannot be int16"):
            refused()
    with pytest.raises(ValueError, match="cannot be uint32"):
        simulated.error_sums_words(words.view(np.uint16), words.astype(np.uint32), "BF16")
    codes, scales = np.zeros((3, 70), np.uint8), np.zeros(2, np.uint16)
    counts = CodeStatistics.empty(FORMATS["FP8_E4M3FN_ROW_BF16S"])
    for refused in (
        lambda: simulated.scan_row(codes, scales),
        lambda: simulated.reconstruct_row(codes, scales, np.empty((3, 70), np.uint32)),
        lambda: simulated.statistics_row(codes, scales, counts),
    ):
        with pytest.raises(ValueError, match="3 rows need as many scales"):
            refused()
    with pytest.raises(ValueError, match="do not go with 3 scales"):
        simulated.statistics_nvfp4(
            codes[:2, :64], np.zeros(3, np.uint8), CodeStatistics.empty(FORMATS["NVFP4"])
        )


def test_what_ran_is_named(simulated):
    fmt, columns = Q4G64_F16S, 130
    planes = filled(fmt, 1, columns)
    simulated.produced()
    simulated.encode(fmt, np.zeros((1, columns), np.uint16), "BF16", planes)
    simulated.statistics_grouped(fmt, columns, planes, acc := CodeStatistics.empty(FORMATS[fmt.name]))
    assert acc.groups == 3
    assert simulated.produced() == {
        "cuda:0": ("encode.Q4G64_F16S.BF16.cuda", "statistics.Q4G64_F16S.cuda"),
    }
    assert simulated.produced() == {}
    assert simulated.device.simulated
