"""The encoder oracle against every stored vector, and its refusals."""

import pytest

from ninfer_core.encoders import PROFILES
from ninfer_core.encoders.maxabs_f16 import (
    ScaleOverflow,
    SourceNotFinite,
    encode_group,
    encode_rows,
    raw_scale,
)
from ninfer_core.errors import UnknownName
from ninfer_core.formats import FORMATS, GROUPED, Q4G64_F16S, W8G32_F16S
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.words import BINARY32, BINARY64, is_finite
from tests.vectors import load

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)


@formats
def test_every_stored_group(fmt):
    for case in load.encode_cases(fmt):
        if case.scale is None:
            with pytest.raises((SourceNotFinite, ScaleOverflow)) as refused:
                encode_group(fmt, case.words)
            first = next((lane for lane, w in enumerate(case.words) if not is_finite(BINARY32, w)), None)
            if first is None:
                assert isinstance(refused.value, ScaleOverflow)
            else:
                assert isinstance(refused.value, SourceNotFinite)
                assert (refused.value.lane, refused.value.word) == (first, case.words[first])
            continue
        result = encode_group(fmt, case.words)
        assert (result.codes, result.scale) == (case.codes, case.scale), case.category
        assert (result.rescued, result.clamped) == (case.rescued, case.clamped), case.category
        amax = max(word & 0x7FFFFFFF for word in case.words)
        if amax:
            assert raw_scale(fmt, amax) == case.raw_scale


@formats
def test_every_stored_matrix(fmt):
    for case in load.matrix_cases(fmt):
        result = encode_rows(fmt, case.source.tolist(), SOURCE_DTYPES[case.dtype])
        codes = [[code for group in row for code in group.codes] for row in result]
        assert codes == case.codes.tolist(), case.key
        assert [[group.scale for group in row] for row in result] == case.scales.tolist(), case.key


def test_scale_limits():
    for entry in load.case_file("group_scale_limits.json")["vectors"]:
        fmt, lanes = FORMATS[entry["format"]], [int(word, 16) for word in entry["values_hex"]]
        if entry["expected"] == "refuse":
            expected = ScaleOverflow if all(is_finite(BINARY32, w) for w in lanes) else SourceNotFinite
            with pytest.raises(expected):
                encode_group(fmt, lanes)
        else:
            result = encode_group(fmt, lanes)
            assert result.scale == int(entry["expected"]["scale_word"], 16), entry["what"]
            assert list(result.codes) == entry["expected"]["codes"], entry["what"]


def test_the_tail_has_its_own_scale():
    case = load.case_file("partial_tail_group.json")
    (row,) = encode_rows(FORMATS[case["format"]], [[int(w, 16) for w in case["values_hex"]]], BINARY32)
    assert [g.scale for g in row] == [int(w, 16) for w in case["expected"]["scale_words"][:3]]
    assert list(row[2].codes) == case["expected"]["tail_codes"][:2]


def test_a_binary64_value_beyond_binary32_is_refused_with_its_place():
    beyond = 0x47F0000000000000  # 2**128
    with pytest.raises(SourceNotFinite) as refused:
        encode_rows(W8G32_F16S, [[0] * 40, [0] * 33 + [beyond]], BINARY64)
    error = refused.value
    assert (error.row, error.group, error.lane, error.word) == (1, 1, 1, beyond)
    assert error.code == "source_not_finite"


def test_a_scale_beyond_binary16_is_refused_with_its_place():
    with pytest.raises(ScaleOverflow) as refused:
        encode_rows(Q4G64_F16S, [[0] * 64 + [0x7F000000]], BINARY32)
    error = refused.value
    assert (error.row, error.group, error.code) == (0, 1, "scale_overflow")


def test_no_profile_has_an_alias():
    profile = PROFILES["MAXABS_F16_RECIP_RNE_V1"]
    assert profile.formats == GROUPED
    with pytest.raises(UnknownName):
        PROFILES["maxabs_f16_recip_rne_v1"]
