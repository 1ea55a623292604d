"""What words the lattice schemes refuse, what they report, and that any words at all are judged."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.form import Form
from ninfer_core.schemes.lattice.aqlm import AQLM
from ninfer_core.schemes.lattice.exl2 import EXL2
from ninfer_core.schemes.lattice.exl3 import EXL3
from ninfer_core.schemes.lattice.quip import QUIP_SHARP_E8P
from ninfer_core.schemes.lattice.spqr import SPQR
from ninfer_core.schemes.run import SchemeRefused
from tests.schemes.lattice.test_vectors import exl3_parts
from tests.schemes.vectors import cases

Arrays = dict[str, NDArray[Any]]


def copied(scheme: str, case: int, *names: str) -> Arrays:
    arrays = cases(scheme)[case].arrays
    return {name: arrays[name].copy() for name in names}


def exl2() -> Arrays:
    return copied("exl2", 2, "q_weight", "q_groups", "q_scale", "q_scale_max", "q_invperm")


def spqr() -> Arrays:
    return copied("spqr", 0, "dense_weights", "row_offsets", "col_vals")


def codes(
    form: Form, parts: Arrays, shape: tuple[int, ...], params: dict[str, Any] | None = None
) -> list[str]:
    """The codes of all findings; decoding is refused, or it is not, without any other exception."""
    return [finding.code.removeprefix("scheme.") for finding in run.check(form, parts, shape, params or {})]


def refused(
    form: Form, parts: Arrays, shape: tuple[int, ...], params: dict[str, Any] | None = None
) -> list[str]:
    with pytest.raises(SchemeRefused) as caught:
        run.decode(form, parts, shape, params or {})
    return [finding.code.removeprefix("scheme.") for finding in caught.value.findings]


@pytest.mark.parametrize(
    "table",
    [
        [7, 0, 3, 10, 3, 16],  # a width that does not exist
        [5, 1, 3, 10, 3, 16],  # the first group leaves out a row
        [5, 0, 3, 10, 3, 10],  # an empty group
        [5, 0, 3, 16, 3, 10],  # falling rows
        [5, 0, 3, 10, 3, 30000],  # beyond the words
        [5, 0, 3, 11, 3, 16],  # no whole number of codes
        [8, 0, 3, 10, 3, 16],  # fewer inputs than the tensor has
        [-1, 0, 3, 10, 3, 16],
    ],
)
def test_exl2_refuses_groups_that_contradict_themselves(table: list[int]) -> None:
    parts = exl2() | {"q_groups": np.array(table, np.int16)}
    assert refused(EXL2, parts, (192, 64)) == ["groups_malformed"]
    assert codes(EXL2, parts, (192, 64)) == ["groups_malformed"]


def test_exl2_refuses_parts_that_do_not_fit_the_table() -> None:
    parts = exl2() | {"q_scale": np.zeros((2, 8), np.int32), "q_scale_max": np.zeros((3, 1), np.float16)}
    assert refused(EXL2, parts, (192, 64)) == ["part_shape", "part_shape"]
    assert refused(EXL2, exl2() | {"q_groups": np.zeros(5, np.int16)}, (192, 64)) == ["part_shape"]
    assert refused(EXL2, exl2() | {"q_weight": np.zeros(22, np.int32)}, (192, 64)) == ["part_shape"]
    assert refused(EXL2, exl2(), (192, 64), {"groups": [5, 64, 3]}) == ["parameter"]
    assert refused(EXL2, exl2(), (192, 64), {"groups": [5, 64, 3, 64]}) == ["parameter"]
    assert refused(EXL2, exl2(), (192, 64), {"groups": [4, 64, 3, 128]}) == ["part_shape"] * 4
    assert refused(EXL2, exl2(), (192, 63)) == ["shape"]


def test_exl2_says_what_its_permutation_and_scales_hold() -> None:
    parts = exl2()
    parts["q_invperm"][[3, 9]] = [parts["q_invperm"][0], 192]
    parts["q_scale_max"][1] = np.inf
    found = run.check(EXL2, parts, (192, 64), {})
    assert [(finding.code, finding.count) for finding in found] == [
        ("scheme.permutation_invalid", 2),
        ("scheme.scale_not_finite", 1),
    ]
    assert found[0].where["index"] == 3
    assert found[1].where == {"part": "q_scale_max", "index": 1, "word": 0x7C00}
    assert refused(EXL2, parts, (192, 64)) == ["permutation_invalid"]


def test_exl2_groups_of_rising_width_are_reported_and_decoded() -> None:
    values = np.random.default_rng(3).standard_normal((96, 8)).astype(np.float32)
    parts = run.encode(EXL2, values, {"groups": [2, 32, 8, 64]})
    assert codes(EXL2, parts, (96, 8)) == ["groups_malformed"]
    assert np.abs(run.decode(EXL2, parts, (96, 8), {})[32:] - values[32:]).max() < 0.05


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 8])
def test_exl2_keeps_what_it_can_hold(width: int) -> None:
    """Values on the grid of a group come back as they were, zeros and a tensor of zeros included."""
    rng = np.random.default_rng(width)
    half = 1 << (width - 1)
    grid = rng.integers(1 - half, half, (64, 16)).astype(np.float32) * np.float32(2.0**-8)
    grid[0] = (half - 1) * 2.0**-8
    params = {"groups": [width, 64]}
    parts = run.encode(EXL2, grid, params)
    assert np.array_equal(run.decode(EXL2, parts, grid.shape, {}), grid)
    assert codes(EXL2, parts, grid.shape, params) == []
    nothing = np.zeros((64, 16), np.float32)
    assert not run.decode(EXL2, run.encode(EXL2, nothing, params), (64, 16), {}).any()


def test_encoders_refuse_what_they_cannot_hold() -> None:
    for form, params in ((EXL2, {"groups": [4, 64]}), (QUIP_SHARP_E8P, {}), (SPQR, {})):
        for wrong in (np.nan, np.inf, 3e38):
            values = np.ones((64, 64), np.float32)
            values[5, 5] = wrong
            with pytest.raises(run.CannotEncode):
                run.encode(form, values, params)
    with pytest.raises(run.CannotEncode):
        run.encode(EXL2, np.ones((64, 64), np.float32), {})
    with pytest.raises(run.CannotEncode):
        run.encode(SPQR, np.ones((16, 16), np.float32), {"outliers": 3})
    for form in (AQLM, EXL3):
        with pytest.raises(run.CannotEncode):
            run.encode(form, np.ones((128, 128), np.float32), {})


def test_exl3_sign_bits_are_factors_of_one() -> None:
    case = cases("exl3")[0]
    parts = exl3_parts(case)
    signs = np.random.default_rng(1).integers(0, 2, 128, np.uint8)
    factors = (1 - 2.0 * signs).astype(np.float16)
    packed = np.packbits(signs, bitorder="little").view(np.int16)
    expected = run.decode(EXL3, parts | {"suh": factors, "svh": factors}, (128, 128), {"bits": 2})
    older = {"trellis": parts["trellis"], "su": packed, "sv": packed}
    assert np.array_equal(run.decode(EXL3, older, (128, 128), {"bits": 2}), expected)


def test_exl3_refuses_sides_and_markers_that_contradict() -> None:
    parts = exl3_parts(cases("exl3")[0])
    shape, params = (128, 128), {"bits": 2}
    marker = np.array(0, np.int32)
    assert refused(EXL3, {"trellis": parts["trellis"]}, shape, params) == ["part_missing", "part_missing"]
    assert refused(EXL3, parts | {"su": np.zeros(8, np.int16)}, shape, params) == ["redundant_differs"]
    assert refused(EXL3, parts | {"mcg": marker, "mul1": marker}, shape, params) == ["redundant_differs"]
    assert codes(EXL3, parts | {"mcg": marker}, shape, params) == ["table_differs"]
    assert codes(EXL3, parts, shape, {"bits": 3}) == ["part_shape"]
    assert codes(EXL3, parts, (128, 64), params) == ["shape"]
    parts["suh"] = np.full(128, np.nan, np.float16)
    assert codes(EXL3, parts, shape, params) == ["scale_not_finite"]


def test_aqlm_refuses_codes_beyond_their_codebook() -> None:
    params = {"num_codebooks": 1, "bits": 4}
    parts: Arrays = {
        "codes": np.array([[[-8], [7]], [[0], [-1]]], np.int8),
        "codebooks": np.arange(128, dtype=np.float16).reshape(1, 16, 1, 8),
        "scales": np.ones((2, 1, 1, 1), np.float16),
    }
    assert run.decode(AQLM, parts, (2, 16), params)[:, ::8].tolist() == [[64, 56], [0, 120]]
    parts["codes"][1, 0, 0] = 8
    assert refused(AQLM, parts, (2, 16), params) == ["index_out_of_range"]
    parts["scales"][0] = np.nan
    parts["codebooks"][0, 3, 0, 1] = np.inf
    found = run.check(AQLM, parts, (2, 16), params)
    assert [finding.code for finding in found] == [
        "scheme.index_out_of_range",
        "scheme.scale_not_finite",
        "scheme.value_not_finite",
    ]
    assert found[0].where["index"] == [1, 0, 0]
    assert found[0].where["limit"] == 16
    for wrong in ({"bits": 17}, {"num_codebooks": 0}, {"in_group": -8}):
        assert codes(AQLM, parts, (2, 16), params | wrong) == ["parameter"]
    assert codes(AQLM, parts, (2, 12), params) == ["shape"]


def test_aqlm_groups_of_several_outputs() -> None:
    """Each vector is a small matrix: [out_group, in_group]."""
    table = np.arange(24, dtype=np.float16).reshape(1, 4, 2, 3)
    parts: Arrays = {
        "codes": np.array([[[1], [-1]]], np.int8),
        "codebooks": table,
        "scales": np.full((1, 1, 1, 1), 2, np.float16),
    }
    params = {"num_codebooks": 1, "bits": 2, "out_group": 2, "in_group": 3}
    assert run.implied_shape(AQLM, parts, params) == (2, 6)
    expected = 2 * np.concatenate([table[0, 1], table[0, 3]], axis=1)
    assert run.decode(AQLM, parts, (2, 6), params).tolist() == expected.tolist()


def test_quip_takes_powers_of_two_alone() -> None:
    parts = copied("quip_sharp_e8p", 0, "Qidxs", "SU", "SV")
    for shape in ((16, 96), (48, 64), (8, 64), (16, 32), (0, 64)):
        assert refused(QUIP_SHARP_E8P, parts, shape) == ["shape"]
    parts["SV"][3] = -np.inf
    assert codes(QUIP_SHARP_E8P, parts, (16, 64)) == ["scale_not_finite"]


def test_spqr_refuses_outliers_that_point_outside() -> None:
    shape = (32, 64)
    parts = spqr()
    parts["row_offsets"][4] = parts["row_offsets"][-1]
    assert refused(SPQR, parts, shape) == ["outliers_out_of_order"]
    assert refused(SPQR, spqr(), shape, {"outliers": 34}) == ["part_shape"]
    assert refused(SPQR, spqr(), shape, {"outliers": -1}) == ["parameter"]
    assert codes(SPQR, spqr(), shape, {"outliers": 33}) == []
    parts["row_offsets"][:] = 0
    assert refused(SPQR, parts, shape) == ["redundant_differs"]
    parts = spqr() | {"col_vals": spqr()["col_vals"].reshape(-1, 1)}
    assert refused(SPQR, parts, shape) == ["part_shape"]
    parts = spqr()
    parts["col_vals"][7] |= 0x40
    parts["in_perm"] = np.zeros(64, np.int16)
    assert refused(SPQR, parts, shape) == ["index_out_of_range", "permutation_invalid"]


def test_spqr_says_what_its_words_hold() -> None:
    shape = (32, 64)
    parts = spqr()
    dense = parts["dense_weights"].view(np.uint64)
    dense[17] ^= np.uint64(1 << 54)  # the odd row of a pair
    dense[20] |= np.uint64(1 << 62)
    dense[2] |= np.uint64(
        0x7C << 54
    )  # the high byte of s_s becomes that of an infinity or NaN, in one row of two
    parts["col_vals"][3] = (0x7C00 << 16) | 5
    found = {finding.code.removeprefix("scheme."): finding for finding in run.check(SPQR, parts, shape, {})}
    assert list(found)[:3] == ["redundant_differs", "padding_nonzero", "scale_not_finite"]
    assert found["redundant_differs"].count == 2
    assert found["padding_nonzero"].where["index"] == 20
    assert found["scale_not_finite"].where["index"] == 0
    assert found["value_not_finite"].where["index"] == 3
    doubled: Arrays = {
        "dense_weights": np.zeros(16, np.int64),
        "row_offsets": np.array([0] * 16 + [2], np.int32),
        "col_vals": np.array([(0x3C00 << 16) | 3] * 2, np.int32),
    }
    assert codes(SPQR, doubled, (16, 16)) == ["outliers_out_of_order"]
    assert run.decode(SPQR, doubled, (16, 16), {})[15, 3] == 2  # both are added


def test_spqr_stores_columns_in_the_order_of_its_permutation() -> None:
    parts = spqr()
    plain = run.decode(SPQR, parts, (32, 64), {})
    order = np.random.default_rng(5).permutation(64).astype(np.int16)
    values = run.decode(SPQR, parts | {"in_perm": order}, (32, 64), {})
    assert np.array_equal(values[:, order], plain)


SETS: tuple[tuple[Form, str, tuple[int, ...], dict[str, Any]], ...] = (
    (EXL2, "exl2", (192, 64), {}),
    (EXL3, "exl3", (128, 128), {"bits": 4}),
    (AQLM, "aqlm", (16, 64), {"num_codebooks": 2, "bits": 8}),
    (QUIP_SHARP_E8P, "quip_sharp_e8p", (16, 64), {}),
    (SPQR, "spqr", (32, 64), {}),
)


def parts_of(scheme: str) -> Arrays:
    if scheme == "exl2":
        return exl2()
    if scheme == "spqr":
        return spqr()
    if scheme == "exl3":
        return {name: array.copy() for name, array in exl3_parts(cases("exl3")[2]).items()}
    names = ("codes", "codebooks", "scales") if scheme == "aqlm" else ("Qidxs", "SU", "SV")
    return copied(scheme, 0, *names)


@settings(max_examples=60, deadline=None)
@given(chosen=st.sampled_from(SETS), data=st.data())
def test_any_words_are_judged_and_decoded_or_refused(chosen: Any, data: st.DataObject) -> None:
    form, scheme, shape, params = chosen
    parts = parts_of(scheme)
    part = data.draw(st.sampled_from(sorted(parts)))
    raw = parts[part].reshape(-1).view(np.uint8)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, raw.size - 1))] = data.draw(st.integers(0, 255))
    found = codes(form, parts, shape, params)
    try:
        run.decode(form, parts, shape, params)
    except SchemeRefused:
        assert set(refused(form, parts, shape, params)) <= set(found)
    else:
        assert not {"index_out_of_range", "permutation_invalid", "part_shape", "part_missing"} & set(found)
