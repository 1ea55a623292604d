"""Every stored vector of the lattice schemes: exact where its oracle is, within its stated bound elsewhere."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.lattice import FORMS, e8p, exl3, quip, trellis
from ninfer_core.schemes.lattice.aqlm import AQLM
from ninfer_core.schemes.lattice.exl2 import EXL2
from ninfer_core.schemes.lattice.exl3 import EXL3
from ninfer_core.schemes.lattice.quip import QUIP_SHARP_E8P
from ninfer_core.schemes.lattice.spqr import SPQR
from tests.schemes.vectors import Case, cases


def named(scheme: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases(scheme), ids=lambda case: case.name)


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    words = np.dtype(f"u{expected.dtype.itemsize}")
    assert found.dtype == expected.dtype
    assert np.array_equal(found.view(words), expected.view(words))


def exl3_parts(case: Case) -> dict[str, NDArray[Any]]:
    """The parts as files have them: the codebook is said by a marker."""
    parts = {name: array for name, array in case.arrays.items() if not name.startswith("expected")}
    codebook = case.params["codebook"]
    if codebook in trellis.MARKERS:
        parts[codebook] = np.array(trellis.MARKERS[codebook], np.uint32).view(np.int32)
    return parts


def test_the_forms_have_the_names_of_the_vectors() -> None:
    assert [form.name for form in FORMS] == ["aqlm", "exl2", "exl3", "quip_sharp_e8p", "spqr"]


@named("exl2")
def test_exl2(case: Case) -> None:
    parts = dict(case.arrays)
    expected = parts.pop("expected_KxN")
    shape = run.implied_shape(EXL2, parts, {})
    same(run.decode(EXL2, parts, shape, {}), expected)
    assert run.check(EXL2, parts, shape, {}) == []
    groups = [number for pair in case.params["groups"] for number in pair]
    same(run.decode(EXL2, parts, shape, {"groups": groups}), expected)


@named("exl3")
def test_exl3(case: Case) -> None:
    parts = exl3_parts(case)
    expected, halves = case.arrays["expected_KxN"], case.arrays["expected_inner_f16"]
    params = {"bits": case.params["bits"]}
    shape = run.implied_shape(EXL3, parts, params)
    same(exl3.inner(parts, shape, params).astype(np.float16), halves)
    values = run.decode(EXL3, parts, shape, params)
    assert np.abs(values - expected).max() <= 1e-6 * np.abs(expected).max()
    assert run.check(EXL3, parts, shape, params) == []


@named("aqlm")
def test_aqlm(case: Case) -> None:
    parts = dict(case.arrays)
    expected = parts.pop("expected")
    if "used_index" in parts:  # only the rows that occur are stored
        table = np.full((1, 1 << 16, 1, 8), np.nan, np.float16)
        table[0, parts.pop("used_index")] = parts.pop("used_codebook_rows")
        parts["codebooks"] = table
    params = {"num_codebooks": case.params["num_codebooks"], "bits": case.params["nbits"]}
    shape = run.implied_shape(AQLM, parts, params)
    same(run.decode(AQLM, parts, shape, params), expected)  # this oracle sums in the same order
    unused = [finding.code for finding in run.check(AQLM, parts, shape, params)]
    assert unused == (["scheme.value_not_finite"] if case.params["nbits"] == 16 else [])


@named("quip_sharp_e8p")
def test_quip(case: Case) -> None:
    parts = {name: case.arrays[name] for name in ("Qidxs", "SU", "SV")}
    expected, indices = case.arrays["expected"], case.arrays["indices"]
    shape = run.implied_shape(QUIP_SHARP_E8P, parts, {})
    same(quip.unpack(parts["Qidxs"], shape), indices)
    same(quip.pack(indices), parts["Qidxs"])
    same(quip.weights(parts, shape), case.arrays["expected_codebook_weights"])
    values = run.decode(QUIP_SHARP_E8P, parts, shape, {})
    assert np.abs(values - expected).max() <= 1e-6 * np.abs(expected).max()
    assert run.check(QUIP_SHARP_E8P, parts, shape, {}) == []


@named("spqr")
def test_spqr(case: Case) -> None:
    parts = {name: case.arrays[name] for name in ("dense_weights", "row_offsets", "col_vals")}
    expected = case.arrays["expected"]
    same(run.decode(SPQR, parts, expected.shape, {}).astype(np.float16), expected)
    assert run.check(SPQR, parts, expected.shape, {}) == []


def test_the_examples_of_the_specification() -> None:
    """5.19, 5.20, 5.21 and 5.23 each give one value by hand."""
    assert e8p.decode(np.array([0, 1], np.uint16)).tolist() == [[0.75] * 8, [0.25] * 8]
    first = [float(trellis.values(name)[0]) for name in ("3inst", "mcg", "mul1")]
    assert (
        np.array(first, np.float32).tolist()
        == np.array([0.76806641, 1.84375, -3.453125], np.float32).tolist()
    )
    parts: dict[str, NDArray[Any]] = {
        "q_weight": np.zeros((1, 8), np.int32),
        "q_groups": np.array([4, 0], np.int16),
        "q_scale": np.array([[8]], np.int32),
        "q_scale_max": np.array([0.05], np.float16),
        "q_invperm": np.arange(8, dtype=np.int32),
    }
    assert run.decode(EXL2, parts, (8, 8), {})[0, 0] == np.float32(-8) * np.float32(0.015823364)


def test_the_word_of_spqr_that_the_specification_shows() -> None:
    word = 0x2AFEB1A23EB1A211
    fields = [word >> 3 * index & 7 for index in range(18)]
    assert fields == [1, 2, *range(8), *range(8)]
    assert word >> 54 == 0xAB


def test_the_drawn_words_are_whole() -> None:
    for form, params, bits in ((SPQR, {}, 64), (QUIP_SHARP_E8P, {}, 64), (EXL2, {"groups": (4, 64)}, 32)):
        assert form.word is not None
        assert sum(piece.bits for piece in form.word(params)) == bits
