"""Parity of copied quantized matrices: codes, scales and the divisor each for themselves."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4
from ninfer_core.layouts.block_scale import scale_offset, swizzle
from ninfer_core.recipes.bundles import Bundle, Part
from ninfer_core.words import BINARY32, finite_value, round_to
from tests.verify import parity_objects as objects

SHAPE = (256, 192)
CODES, SCALES = "parity.copied_code_mismatch", "parity.copied_scale_mismatch"


def nvfp4(**more: Any) -> tuple[objects.TensorPlan, Bundle]:
    bundle = objects.nvfp4_bundle(np.random.default_rng(2), *SHAPE, **more)
    return objects.plan(NVFP4, bundle, "copy_nvfp4_words"), bundle


def fp8() -> tuple[objects.TensorPlan, Bundle]:
    bundle = objects.fp8_bundle(np.random.default_rng(4), 12, 70)
    return objects.plan(FP8_E4M3FN_ROW_BF16S, bundle, "copy_fp8_row_words"), bundle


@pytest.mark.parametrize("made", [nvfp4, fp8])
def test_source_words_are_placed_by_the_layout(made) -> None:
    plan, bundle = made()
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    assert np.array_equal(planes[0], bundle.codes.words.reshape(-1))
    if bundle.divisor is None:
        assert np.array_equal(planes[1], bundle.scales.words.reshape(-1))
    else:
        assert planes[2].tolist() == [0x41000000]
        for row, group in ((0, 0), (33, 5), (127, 11), (200, 7)):
            assert planes[1][scale_offset(row, group, SHAPE[1])] == bundle.scales.words[row, group]
    whole = objects.compare(plan, block, planes)
    assert list(whole.faults) == []
    assert whole.sums is not None
    assert (whole.sums.count, whole.sums.squared_error) == (np.prod(bundle.shape), 0.0)


@pytest.mark.parametrize(("made", "weights"), [(nvfp4, 128 * 64), (fp8, 64)])
def test_blocks_of_some_columns_are_parts_of_the_whole(made, weights) -> None:
    plan, bundle = made()
    if weights == 64:
        bundle = objects.fp8_bundle(np.random.default_rng(4), 2, 300)
        plan = objects.plan(FP8_E4M3FN_ROW_BF16S, bundle, "copy_fp8_row_words")
    parts = objects.blocks(plan, weights)
    assert all(block.columns < plan.shape[1] for block in parts)
    for block in parts:
        derived = objects.planes_of(plan, block)
        columns = slice(block.column, block.column + block.columns)
        rows = slice(block.row, block.row + block.rows)
        per_byte = 2 if made is nvfp4 else 1
        halves = slice(columns.start // per_byte, columns.stop // per_byte)
        assert np.array_equal(derived[0].reshape(block.rows, -1), bundle.codes.words[rows, halves])
        if made is nvfp4:
            groups = slice(columns.start // 16, columns.stop // 16)
            own = np.ascontiguousarray(bundle.scales.words[rows, groups])
            assert np.array_equal(derived[1], swizzle(own))


@pytest.mark.parametrize("made", [nvfp4, fp8])
def test_one_flipped_bit_of_any_plane_is_caught(made) -> None:
    plan, _ = made()
    (block,) = objects.blocks(plan)
    rng = np.random.default_rng(5)
    names = [CODES, SCALES, "parity.divisor_mismatch"]
    for number, plane in enumerate(objects.planes_of(plan, block)):
        for place in {0, plane.size - 1, *rng.integers(0, plane.size, 20).tolist()}:
            for bit in range(plane.dtype.itemsize * 8):
                planes = objects.planes_of(plan, block)
                planes[number][place] ^= plane.dtype.type(1 << bit)
                (fault,) = objects.faults_of(plan, block, planes).values()
                assert (fault.code, fault.count) == (names[number], 1), (number, place, bit)


def test_a_differing_nvfp4_word_has_its_logical_place() -> None:
    plan, bundle = nvfp4()
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    planes[0][(33 * 192 + 81) // 2] ^= 0x80  # the odd column is the high nibble: the sign of column 81
    planes[1][scale_offset(200, 7, 192)] = 0x7F
    faults = objects.faults_of(plan, block, planes)
    code = int(bundle.codes.words[33, 40]) >> 4
    assert dict(faults[CODES].where) == {
        "row": 33,
        "column": 81,
        "group": 5,
        "lane": 1,
        "stored": f"0x{code ^ 8:x}",
        "derived": f"0x{code:x}",
    }
    scale = int(bundle.scales.words[200, 7])
    where = {"row": 200, "group": 7, "stored": "0x7f", "derived": f"0x{scale:02x}"}
    assert dict(faults[SCALES].where) == where


def test_rows_moved_with_or_without_their_scales() -> None:
    plan, _ = fp8()
    (block,) = objects.blocks(plan)
    codes, scales = objects.planes_of(plan, block)
    order = [1, 0, *range(2, 12)]
    moved = [codes.reshape(12, 70)[order].reshape(-1), scales[order]]
    faults = objects.faults_of(plan, block, moved)
    assert set(faults) == {CODES, SCALES}
    assert faults[CODES].samples["rows_differ"] == (0, 1)
    assert "2 of 12 rows differ, as from a wrong row order" in faults[CODES].message
    faults = objects.faults_of(plan, block, [codes, scales[order]])
    assert set(faults) == {SCALES}
    assert faults[SCALES].samples["rows"] == (0, 1)


def test_a_multiplier_that_was_not_inverted() -> None:
    plan, _ = nvfp4(source_word=0x3E000000)  # the source's multiplier 0.125, the divisor 8
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    planes[2][0] = 0x3E000000
    (fault,) = objects.faults_of(plan, block, planes).values()
    assert (fault.code, fault.count) == ("parity.global_scale_direction", 1)
    assert {key: fault.where[key] for key in ("divisor", "expected_divisor", "ratio")} == {
        "divisor": 0.125,
        "expected_divisor": 8.0,
        "ratio": 64.0,
    }


def test_a_divisor_that_was_inverted() -> None:
    plan, bundle = nvfp4()
    word = 0x40490FDB
    bundle.divisor.words[0] = word
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    planes[2][0] = round_to(BINARY32, Fraction(1) / finite_value(BINARY32, word))
    (fault,) = objects.faults_of(plan, block, planes).values()
    assert fault.code == "parity.global_scale_direction"
    assert "the reciprocal was stored" in fault.message


@pytest.mark.parametrize("word", [0, 0x80000000, 0x7F800000, 0x7FC00000, 0x41000001])
def test_another_divisor_is_no_matter_of_direction(word) -> None:
    plan, _ = nvfp4()
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    planes[2][0] = word
    whole = objects.compare(plan, block, planes)
    (fault,) = whole.faults
    assert (fault.code, fault.where["stored"]) == ("parity.divisor_mismatch", f"0x{word:08x}")
    assert (whole.sums is None) == (word != 0x41000001)  # no divisor, no values


def test_words_that_the_source_must_not_hold_are_faults_of_the_source() -> None:
    plan, bundle = fp8()
    bundle.codes.words[3, 5] = 0x7F
    bundle.scales.words[4, 0] = 0x8000
    (block,) = objects.blocks(plan)
    (fault,) = objects.faults_of(plan, block, objects.planes_of(plan, block)).values()
    assert (fault.code, fault.count) == ("source.bundle_word_invalid", 2)
    assert "byte" not in fault.where  # a place in the artifact says nothing of the source


def test_a_bundle_of_several_parts_is_compared_with_each_stated_word() -> None:
    plan, bundle = nvfp4()
    two = Bundle(
        bundle.kind,
        bundle.shape,
        bundle.codes,
        bundle.scales,
        bundle.divisor,
        (Part("base", "q", 0x3E000000, 0x41000000), Part("base", "k", 0x3E000000, 0x41000000)),
    )
    plan = objects.plan(NVFP4, two, "copy_nvfp4_words")
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(plan, block)
    planes[2][0] = 0x3E000000
    assert set(objects.faults_of(plan, block, planes)) == {"parity.global_scale_direction"}
