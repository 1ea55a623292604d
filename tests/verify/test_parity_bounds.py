"""Foreign producers: no word is derived, the stated bound is tried on every value."""

import math

import numpy as np
import pytest

from ninfer_core.formats import BF16, FP8_E4M3FN_ROW_BF16S, I32, NVFP4, Q4G64_F16S, W8G32_F16S
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.recipes.producers import is_evaluable
from ninfer_core.verify.bounds import overall_faults
from tests.verify import parity_objects as objects

SHAPE = (5, 200)
SOURCE = np.random.default_rng(12).standard_normal(SHAPE).astype(np.float32)


def held(dtype: str = "F32") -> objects.Held:
    words = {"F32": SOURCE.copy().view(np.uint32), "F64": SOURCE.astype(np.float64).view(np.uint64)}.get(
        dtype
    )
    return objects.Held(objects.bf16(SOURCE) if words is None else words, dtype)


def canonical(fmt, dtype="F32"):
    """Planes as our own encoder makes them: legal words of a known error."""
    encode = objects.FP8 if fmt is FP8_E4M3FN_ROW_BF16S else objects.GROUPED
    plan = objects.plan(fmt, held(dtype), encode)
    (block,) = objects.blocks(plan)
    return block, objects.planes_of(plan, block)


@pytest.mark.parametrize("fmt", [Q4G64_F16S, W8G32_F16S, FP8_E4M3FN_ROW_BF16S], ids=lambda fmt: fmt.name)
def test_a_bound_that_holds(fmt) -> None:
    block, planes = canonical(fmt)
    # A code is half a step off at most: half a scale, or half of the 32 scales between the largest FP8 codes.
    most = 16.5 if fmt is FP8_E4M3FN_ROW_BF16S else 0.51
    plan = objects.foreign(fmt, held(), max_scale_error=most, max_abs_error=1.0)
    whole = objects.compare(plan, block, planes)
    assert list(whole.faults) == []
    assert whole.complete
    assert whole.sums is not None
    assert whole.sums.count == SOURCE.size
    assert 0 < whole.sums.largest_error < 1.0


@pytest.mark.parametrize("dtype", ["F32", "F64", "BF16"])
def test_values_beyond_the_bound_are_counted_and_the_first_is_placed(dtype) -> None:
    block, planes = canonical(W8G32_F16S, dtype)
    planes[0][1 * 256 + 7] ^= 0x40  # row 1, lane 7: 64 scales off
    planes[0][3 * 256 + 9] ^= 0x40
    for bound, measure in (
        ({"max_scale_error": 0.6}, "max_scale_error"),
        ({"max_abs_error": 0.1}, "max_abs_error"),
    ):
        plan = objects.foreign(W8G32_F16S, held(dtype), **bound)
        (fault,) = objects.compare(plan, block, planes).faults
        assert (fault.code, fault.count) == ("parity.bound_exceeded", 2)
        assert (fault.where["row"], fault.where["column"], fault.where["measure"]) == (1, 7, measure)
        assert fault.samples["rows"] == (1, 3)


def test_what_cannot_be_ordered_exceeds_every_bound() -> None:
    block, planes = canonical(FP8_E4M3FN_ROW_BF16S)
    planes[0][0] = 0x7F
    source = held()
    source.words[2, 3] = 0x7F800000
    plan = objects.foreign(FP8_E4M3FN_ROW_BF16S, source, max_abs_error=1e30)
    (fault,) = objects.compare(plan, block, planes).faults
    assert fault.count == 2
    assert fault.where["value"] == "nan"


def test_a_zero_scale_allows_no_error_in_scales() -> None:
    block, planes = canonical(Q4G64_F16S)
    groups = planes[1].reshape(5, 4)
    groups[4, 0] = 0
    planes[0].reshape(5, 4, 32)[4, 0] = 0
    plan = objects.foreign(Q4G64_F16S, held(), max_scale_error=0.51)
    (fault,) = objects.compare(plan, block, planes).faults
    assert fault.count == 64
    assert "under a zero scale" in fault.found


def test_a_source_that_is_quantized_itself_is_compared_by_its_values() -> None:
    rng = np.random.default_rng(6)
    for bundle, fmt in (
        (objects.nvfp4_bundle(rng, 128, 64), NVFP4),
        (objects.fp8_bundle(rng, 4, 96), FP8_E4M3FN_ROW_BF16S),
    ):
        copied = objects.plan(fmt, bundle, "copy")
        (block,) = objects.blocks(copied)
        planes = objects.planes_of(copied, block)
        plan = objects.foreign(fmt, bundle, max_abs_error=0.0, max_scale_error=0.0)
        assert list(objects.compare(plan, block, planes).faults) == []
        planes[0][5] ^= 2
        (fault,) = objects.compare(plan, block, planes).faults
        assert (fault.code, fault.count) == ("parity.bound_exceeded", 1)


def test_direct_words_are_values_too() -> None:
    plan = objects.foreign(BF16, held(), max_abs_error=0.02)
    (block,) = objects.blocks(plan)
    words = objects.bf16(SOURCE).reshape(-1)
    assert list(objects.compare(plan, block, [words]).faults) == []
    words[17] = 0x4100
    (fault,) = objects.compare(plan, block, [words]).faults
    assert (fault.count, fault.where["index"]) == (1, 17)


def test_a_bound_without_values_or_scales_cannot_be_tried() -> None:
    assert is_evaluable(objects.foreign(Q4G64_F16S, held(), max_scale_error=1.0))
    assert is_evaluable(objects.foreign(BF16, held(), max_abs_error=1.0))
    assert not is_evaluable(objects.foreign(BF16, held(), max_scale_error=1.0))
    assert not is_evaluable(objects.foreign(Q4G64_F16S, held()))
    counts = objects.Held(np.arange(4, dtype=np.uint32), "I32")
    assert not is_evaluable(objects.foreign(I32, counts, max_abs_error=1.0))
    assert not is_evaluable(objects.foreign(BF16, counts, max_abs_error=1.0))
    block, planes = canonical(Q4G64_F16S)
    legal_only = objects.compare(objects.foreign(Q4G64_F16S, held()), block, planes)
    assert list(legal_only.faults) == []
    assert legal_only.sums is not None


def test_a_stored_divisor_that_is_none_leaves_the_bound_untried() -> None:
    bundle = objects.nvfp4_bundle(np.random.default_rng(6), 128, 64)
    plan = objects.foreign(NVFP4, bundle, max_abs_error=1.0)
    (block,) = objects.blocks(plan)
    planes = objects.planes_of(objects.plan(NVFP4, bundle, "copy"), block)
    planes[2][0] = 0
    outcome = objects.compare(plan, block, planes)
    assert (list(outcome.faults), outcome.sums, outcome.complete) == ([], None, False)


@pytest.mark.parametrize(
    ("bound", "sums", "found"),
    [
        ({"nmse": 0.01}, (100.0, 1.0), None),
        ({"nmse": 0.01}, (100.0, 1.1), "0.011"),
        ({"nmse": 0.0}, (0.0, 0.0), None),
        ({"nmse": 1.0}, (0.0, 1.0), "undefined"),
        ({"nmse": 1.0}, (math.inf, 1.0), "undefined"),
        ({"min_sqnr_db": 20.0}, (100.0, 1.0), None),
        ({"min_sqnr_db": 20.1}, (100.0, 1.0), "20 dB"),
        ({"min_sqnr_db": 100.0}, (100.0, 0.0), None),
        ({"min_sqnr_db": 1.0}, (math.nan, math.nan), "undefined"),
        ({"nmse": 0.01, "min_sqnr_db": 30.0}, (100.0, 1.0), "20 dB"),
    ],
)
def test_bounds_of_a_whole_tensor_are_judged_on_merged_sums(bound, sums, found) -> None:
    plan = objects.foreign(Q4G64_F16S, held(), **bound)
    merged = ErrorSums(1000, sums[1], sums[0], 1.0, 0.1)
    faults = overall_faults(plan, merged)
    if found is None:
        assert faults == []
    else:
        (fault,) = faults
        assert (fault.code, fault.found) == ("parity.bound_exceeded_overall", found)


def test_no_sums_prove_no_bound() -> None:
    plan = objects.foreign(Q4G64_F16S, held(), nmse=1.0)
    assert [fault.code for fault in overall_faults(plan, None)] == ["parity.bound_exceeded_overall"]
    assert overall_faults(objects.foreign(Q4G64_F16S, held()), None) == []
    ours = objects.plan(Q4G64_F16S, held(), objects.GROUPED)
    assert overall_faults(ours, None) == []
