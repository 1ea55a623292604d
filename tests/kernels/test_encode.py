"""The encode kernel: every stored vector, and the oracle on drawn matrices, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.encoders.maxabs_f16 import ScaleOverflow, SourceNotFinite, encode_rows
from ninfer_core.formats import FORMATS, GROUPED, Q4G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.words import BINARY32, is_finite
from tests import strategies
from tests.kernels import oracles
from tests.vectors import load

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
dtypes = pytest.mark.parametrize("dtype", list(SOURCE_DTYPES))


def encode(fmt, source, dtype):
    rows, columns = source.shape
    planes = GroupedPlanes.empty(fmt, rows, columns)
    for plane in (planes.base, planes.high, planes.scales):
        plane.fill(0xAA)  # whatever is not written shows
    return cpu.encode(fmt, source, dtype, planes), planes


def assert_planes(planes, expected):
    assert np.array_equal(planes.scales, expected.scales)
    assert np.array_equal(planes.base, expected.base)
    assert np.array_equal(planes.high, expected.high)


def reference(fmt, source, dtype):
    """What the oracle makes of a matrix: planes and counts, or the fault."""
    try:
        results = encode_rows(fmt, source.tolist(), SOURCE_DTYPES[dtype])
    except SourceNotFinite as error:
        return EncodeFault("source_not_finite", error.row, error.group, error.lane, error.word), None
    except ScaleOverflow as error:
        return EncodeFault("scale_overflow", error.row, error.group, None, error.raw_scale_word), None
    counts = EncodeCounts(
        sum(group.rescued for row in results for group in row),
        sum(group.clamped for row in results for group in row),
    )
    return counts, strategies.pack(fmt, *oracles.encoded(fmt, results, source.shape[1]))


@formats
def test_every_stored_group(fmt):
    for case in load.encode_cases(fmt):
        got, planes = encode(fmt, np.array([case.words], np.uint32), "F32")
        if case.scale is None:
            assert isinstance(got, EncodeFault), case.category
            first = next((lane for lane, w in enumerate(case.words) if not is_finite(BINARY32, w)), None)
            assert (got.row, got.group, got.lane) == (0, 0, first)
            assert got.kind == ("scale_overflow" if first is None else "source_not_finite")
            if first is not None:
                assert got.word == case.words[first]
            continue
        assert got == EncodeCounts(int(case.rescued), case.clamped), case.category
        codes = np.zeros((planes.scales.size, fmt.group), np.int8)
        codes[0, : len(case.codes)] = case.codes
        scales = np.zeros(planes.scales.size, np.uint16)
        scales[0] = case.scale
        assert_planes(planes, strategies.pack(fmt, codes, scales))


@formats
def test_all_stored_groups_as_one_matrix(fmt):
    cases = [
        case for case in load.encode_cases(fmt) if case.scale is not None and len(case.words) == fmt.group
    ]
    source = np.array([case.words for case in cases], np.uint32)
    got, planes = encode(fmt, source, "F32")
    per_row = groups_per_row(fmt, fmt.group)
    assert got == EncodeCounts(sum(c.rescued for c in cases), sum(c.clamped for c in cases))
    assert planes.scales.reshape(-1, per_row)[:, 0].tolist() == [case.scale for case in cases]
    # The same groups side by side in one long row: tiles, and pairs of groups in a strip.
    fill = -len(cases) % (128 // fmt.group)
    side = np.concatenate([source.reshape(1, -1), np.zeros((1, fill * fmt.group), np.uint32)], axis=1)
    got, flat = encode(fmt, side, "F32")
    codes = np.array([case.codes for case in cases] + [(0,) * fmt.group] * fill, np.int8)
    scales = np.array([case.scale for case in cases] + [0] * fill, np.uint16)
    assert_planes(flat, strategies.pack(fmt, codes, scales))


@formats
def test_every_stored_matrix(fmt):
    def aligned(plane):
        data = plane.tobytes()
        return data + bytes(-len(data) % 256)

    for case in load.matrix_cases(fmt):
        got, planes = encode(fmt, case.source, case.dtype)
        assert isinstance(got, EncodeCounts)
        payload = aligned(planes.base) + aligned(planes.high) + planes.scales.tobytes()
        assert payload == case.payload, case.key


def test_scale_limits_and_partial_tail():
    for entry in load.case_file("group_scale_limits.json")["vectors"]:
        fmt = FORMATS[entry["format"]]
        source = np.array([[int(word, 16) for word in entry["values_hex"]]], np.uint32)
        got, planes = encode(fmt, source, "F32")
        assert isinstance(got, EncodeFault) == (entry["expected"] == "refuse"), entry["what"]
        if entry["expected"] != "refuse":
            assert planes.scales[0] == int(entry["expected"]["scale_word"], 16)
    case = load.case_file("partial_tail_group.json")
    fmt = FORMATS[case["format"]]
    _, planes = encode(fmt, np.array([[int(w, 16) for w in case["values_hex"]]], np.uint32), "F32")
    assert planes.scales.tolist() == [int(w, 16) for w in case["expected"]["scale_words"]]
    assert [oracles.code_at(fmt, planes, 2, lane) for lane in range(64)] == case["expected"]["tail_codes"]


@formats
@dtypes
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_kernel_equals_oracle(fmt, dtype, data):
    source = data.draw(strategies.finite_rows(fmt, dtype))
    expected, planes = reference(fmt, source, dtype)
    got, actual = encode(fmt, source, dtype)
    assert got == expected
    if planes is not None:
        assert_planes(actual, planes)


@formats
@dtypes
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_first_fault_is_the_oracles(fmt, dtype, data):
    source = data.draw(strategies.finite_rows(fmt, dtype))
    word = SOURCE_DTYPES[dtype]
    for _ in range(data.draw(st.integers(1, 4))):
        row = data.draw(st.integers(0, source.shape[0] - 1))
        column = data.draw(st.integers(0, source.shape[1] - 1))
        source[row, column] = data.draw(strategies.any_words(word))
    expected, planes = reference(fmt, source, dtype)
    got, actual = encode(fmt, source, dtype)
    assert got == expected
    if planes is not None:
        assert_planes(actual, planes)


@pytest.mark.parametrize("fmt", [Q4G64_F16S, W8G32_F16S], ids=lambda f: f.name)
def test_a_fault_far_into_a_large_block(fmt):
    source = np.random.default_rng(7).integers(0x3C00, 0x3F80, (37, 1000)).astype(np.uint16)
    source[30, 777], source[30, 778], source[36, 0] = 0xFFC0, 0x7F80, 0x7F80
    got, _ = encode(fmt, source, "BF16")
    assert got == EncodeFault("source_not_finite", 30, 777 // fmt.group, 777 % fmt.group, 0xFFC0)


@formats
def test_a_run_of_columns_is_the_same_part_of_the_planes(fmt):
    source = np.random.default_rng(8).integers(0, 0x3F80, (1, 1000)).astype(np.uint16)
    _, whole = encode(fmt, source, "BF16")
    _, head = encode(fmt, np.ascontiguousarray(source[:, :640]), "BF16")
    _, tail = encode(fmt, np.ascontiguousarray(source[:, 640:]), "BF16")
    for name in ("base", "high", "scales"):
        assert np.array_equal(
            np.concatenate([getattr(head, name), getattr(tail, name)]), getattr(whole, name)
        )


def test_a_spread_of_every_bf16_amax():
    """BF16 words as the maximum of a group, from the smallest to those that overflow, against the oracle."""
    fmt, words = Q6G64_F16S, np.arange(1, 0x7F80, 37, dtype=np.uint16)
    source = np.zeros((words.size, 64), np.uint16)
    source[:, 0], source[:, 1], source[:, 2] = words, words // 2, words | 0x8000
    for row, line in zip(words, source, strict=True):
        got, planes = encode(fmt, line[None], "BF16")
        expected, encoded = reference(fmt, line[None], "BF16")
        assert got == expected, hex(row)
        if encoded is not None:
            assert_planes(planes, encoded)
    assert isinstance(got, EncodeFault)


def test_wrong_arrays_are_refused():
    planes = GroupedPlanes.empty(Q4G64_F16S, 1, 128)
    with pytest.raises(ValueError, match="source words"):
        cpu.encode(Q4G64_F16S, np.zeros((1, 128), np.uint32), "BF16", planes)
    with pytest.raises(ValueError, match="planes"):
        cpu.encode(Q4G64_F16S, np.zeros((1, 300), np.uint16), "BF16", planes)
    with pytest.raises(ValueError, match="planes"):
        cpu.encode(Q4G64_F16S, np.zeros((2, 128), np.uint16), "BF16", planes)
