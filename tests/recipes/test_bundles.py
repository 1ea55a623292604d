"""Quantized source matrices: codes and scales move together; their single words are judged before anything is made."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.recipes import Bundle, Plan, TensorPlan
from ninfer_core.recipes.scalars import fault_of_reciprocal, reciprocal
from ninfer_core.words import BINARY32, finite_value
from tests.recipes.build import bound, document, folder, parsed
from tests.sources.build import MemoryFiles

N, K = 256, 64
ONE, TWO, THREE = 0x3F800000, 0x40000000, 0x40400000
Json = dict[str, Any]


def nvfp4(prefix: str, **members: Any) -> Json:
    return {"op": "nvfp4_matrix", "from": "base", "prefix": prefix, "shape": [N, K], **members}


def fp8(prefix: str) -> Json:
    return {"op": "fp8_row_matrix", "from": "base", "prefix": prefix, "shape": [N, K]}


def joined(*parts: Json) -> Json:
    return {"op": "concat_rows", "of": list(parts)}


def blocks(of: Json) -> Json:
    return {"op": "row_blocks", "blocks": 4, "stride": 64, "begin": 0, "end": 32, "of": of}


def codes_of(seed: int, columns: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 120, (N, columns), np.uint8)


def stored(seed: int, divisor: int = ONE, shape: Any = (1,), ending: str = "weight_global_scale") -> Json:
    """The tensors of the NVFP4 matrix `m<seed>`."""
    word = np.array([divisor], "<u4").tobytes()
    return {
        f"m{seed}.weight_packed": ("U8", [N, K // 2], codes_of(seed, K // 2).tobytes()),
        f"m{seed}.weight_scale": ("F8_E4M3", [N, K // 16], codes_of(seed + 50, K // 16).tobytes()),
        f"m{seed}.{ending}": ("F32", list(shape), word),
    }


def rows_of(seed: int) -> Json:
    """The tensors of the FP8 matrix `m<seed>`."""
    scales = np.random.default_rng(seed).integers(0x3800, 0x3F80, (N, 1)).astype("<u2")
    return {
        f"m{seed}.weight": ("F8_E4M3", [N, K], codes_of(seed, K).tobytes()),
        f"m{seed}.weight_scale": ("BF16", [N, 1], scales.tobytes()),
    }


def rule(value: Json, **members: Any) -> Json:
    return {"object": "o", "value": value, "format": "NVFP4", "encode": "copy_nvfp4_words", **members}


def made(value: Json, base: MemoryFiles, **members: Any) -> tuple[list[str], Plan | None, Any]:
    return bound(document([rule(value, **members)]), {"base": base})


def bundle(value: Json, base: MemoryFiles, **members: Any) -> tuple[TensorPlan, Bundle]:
    codes, plan, _ = made(value, base, **members)
    assert codes == []
    assert plan is not None
    (item,) = plan.objects
    assert isinstance(item, TensorPlan)
    assert isinstance(item.value, Bundle)
    return item, item.value


def test_codes_and_scales_move_together() -> None:
    base = folder({**stored(1), **stored(2)})
    value = joined(blocks(nvfp4("m1")), {"op": "rows", "begin": 128, "end": 256, "of": nvfp4("m2")})
    item, found = bundle(value, base)
    assert (item.shape, found.shape, item.evidence_kind) == ((N, K), (N, K), "copied-exact")
    for component, width, shift in ((found.codes, K // 2, 0), (found.scales, K // 16, 50)):
        first, second = codes_of(1 + shift, width), codes_of(2 + shift, width)
        kept = np.concatenate([first[start : start + 32] for start in range(0, N, 64)])
        expected = np.concatenate([kept, second[128:]])
        assert component.shape == (N, width)
        assert np.array_equal(component.read(0, N * width), expected.reshape(-1))
    assert (found.codes.dtype, found.scales.dtype) == ("U8", "F8_E4M3")
    assert found.divisor is not None
    assert found.divisor.read(0, 1).tolist() == [ONE]
    assert [(part.prefix, part.source_word, part.divisor_word) for part in found.parts] == [
        ("m1", ONE, ONE),
        ("m2", ONE, ONE),
    ]
    assert item.sources == tuple(
        ("base", f"{matrix}.{field}")
        for field in ("weight_packed", "weight_scale", "weight_global_scale")
        for matrix in ("m1", "m2")
    )


def test_rows_of_fp8_are_gathered_with_their_scales() -> None:
    ids = np.array([200, 3, 3, 255], "<i4")
    base = folder({**rows_of(1), "ids": ("I32", [4], ids.tobytes())})
    rules = [
        rule({"op": "gather_rows", "ids": "ids", "of": fp8("m1")}, format="FP8_E4M3FN_ROW_BF16S", encode="copy_fp8_row_words"),
        {"object": "ids", "value": {"op": "tensor", "from": "base", "name": "ids", "shape": [4], "dtype": "I32"}, "format": "I32", "encode": "copy_words"},
    ]  # fmt: skip
    codes, plan, _ = bound(document(rules), {"base": base})
    assert codes == []
    assert plan is not None
    item = plan.objects[0]
    assert isinstance(item, TensorPlan)
    assert isinstance(item.value, Bundle)
    assert (item.shape, item.value.divisor) == ((4, K), None)
    assert np.array_equal(item.value.codes.read(0, 4 * K), codes_of(1, K)[ids].reshape(-1))
    scales = np.frombuffer(rows_of(1)["m1.weight_scale"][2], "<u2")
    assert np.array_equal(item.value.scales.read(0, 4), scales[ids])


def test_joined_matrices_have_one_divisor() -> None:
    base = folder({**stored(1, ONE), **stored(2, TWO)})
    codes, _, findings = made(joined(nvfp4("m1"), nvfp4("m2")), base)
    assert codes == ["source.divisors_differ"]
    where = findings.items[0].where
    assert where["parts"] == ["m1", "m2"]
    assert where["words"] == ["0x3f800000", "0x40000000"]


@pytest.mark.parametrize("word", [0, 0x80000000, 0xBF800000, 0x7F800000, 0x7FC00000, 0xFFC00001])
def test_a_divisor_that_is_none(word: int) -> None:
    assert made(nvfp4("m1"), folder(stored(1, word)))[0] == ["source.bundle_word_invalid"]
    inverted = {"op": "invert", "of": nvfp4("m1")}
    assert made(inverted, folder(stored(1, word)))[0] == ["source.not_invertible"]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_multiplier_spelled_otherwise_is_inverted(shape: Any) -> None:
    base = folder(stored(1, 0x3C000000, shape, "weight_scale_2"))  # 1/128
    suffixes = {"codes": ".weight_packed", "divisor": ".weight_scale_2"}
    item, found = bundle({"op": "invert", "of": nvfp4("m1", suffixes=suffixes)}, base)
    assert found.divisor is not None
    assert found.divisor.read(0, 1).tolist() == [0x43000000]
    assert (found.parts[0].source_word, found.parts[0].divisor_word) == (0x3C000000, 0x43000000)
    assert item.evidence_kind == "derived-exact"
    third, _ = bundle({"op": "invert", "of": nvfp4("m1")}, folder(stored(1, THREE)))
    assert third.evidence_kind == "within-bound"


def test_a_divisor_of_two_words_is_another_shape() -> None:
    base = folder({**stored(1), "m1.weight_global_scale": ("F32", [2], b"\0" * 8)})
    assert made(nvfp4("m1"), base)[0] == ["source.shape_mismatch"]


SCALAR = {"op": "equal_scalar", "from": "base", "names": ["a", "b"]}


def scalar(value: Json, *words: int) -> tuple[list[str], Any, Any]:
    base = folder({n: ("F32", [1], np.array([w], "<u4").tobytes()) for n, w in zip("ab", words, strict=True)})
    codes, plan, findings = made(value, base, format="FP32", encode="copy_words")
    return codes, plan.objects[0] if plan is not None else None, findings


def test_equal_words_are_one_scalar() -> None:
    codes, item, _ = scalar(SCALAR, THREE, THREE)
    assert codes == []
    assert (item.shape, item.value.read(0, 1).tolist(), item.evidence_kind) == ((), [THREE], "copied-exact")
    codes, _, findings = scalar(SCALAR, THREE, THREE ^ 1)
    assert codes == ["source.words_differ"]
    assert findings.items[0].where["tensors"] == ["a", "b"]
    assert findings.items[0].where["words"] == ["0x40400000", "0x40400001"]


def test_a_scalar_is_inverted() -> None:
    codes, item, _ = scalar({"op": "invert", "of": SCALAR}, TWO, TWO)
    assert codes == []
    assert (item.value.read(0, 1).tolist(), item.evidence_kind) == ([0x3F000000], "derived-exact")
    codes, item, _ = scalar({"op": "invert", "of": SCALAR}, THREE, THREE)
    assert (codes, item.value.read(0, 1).tolist(), item.evidence_kind) == ([], [0x3EAAAAAB], "within-bound")
    assert scalar({"op": "invert", "of": SCALAR}, 1, 1)[0] == ["source.not_invertible"]


@settings(deadline=None, max_examples=500)
@given(st.integers(1, 0x7F7FFFFF))
def test_reciprocals_are_the_nearest_words(word: int) -> None:
    found, exact = reciprocal(word)
    with np.errstate(all="ignore"):
        one = np.array([word], np.uint32).view(np.float32)
        quotient = (np.float32(1) / one).view(np.uint32)
    assert found == int(quotient[0])
    assert (fault_of_reciprocal(word) is None) == (found < 0x7F800000)
    if found < 0x7F800000:
        assert exact == (Fraction(finite_value(BINARY32, found)) * finite_value(BINARY32, word) == 1)


FORMATS = [
    (nvfp4("m1"), {"encode": "copy_fp8_row_words"}, ["encoder_format", "encoder_dtype"]),
    (nvfp4("m1"), {"format": "FP8_E4M3FN_ROW_BF16S"}, ["encoder_format"]),
    (fp8("m1"), {}, ["encoder_dtype"]),
    (fp8("m1"), {"format": "Q4G64_F16S", "encode": "MAXABS_F16_RECIP_RNE_V1"}, ["encoder_dtype"]),
    (fp8("m1"), {"format": "BF16", "encode": "copy_words"}, ["encoder_dtype"]),
    ({"op": "rows", "begin": 0, "end": 64, "of": nvfp4("m1")}, {}, ["shape_unsupported"]),
]


@pytest.mark.parametrize(("value", "members", "faults"), FORMATS)
def test_matrices_are_copied_into_their_own_format(value: Json, members: Json, faults: list[str]) -> None:
    assert [code for code, _ in parsed(document([rule(value, **members)]))[0]] == faults


def test_words_are_judged_from_the_inside() -> None:
    twice = {"op": "invert", "of": {"op": "invert", "of": SCALAR}}
    assert scalar(twice, THREE, THREE)[0] == []
    assert scalar(twice, 0, 0)[0] == ["source.not_invertible"]
    assert scalar(twice, ONE, TWO)[0] == ["source.words_differ"]
    number = np.array([9], "<i4").tobytes()
    base = folder({"x": ("F32", [2], b"\0" * 8), "ids": ("I32", [1], number)})
    x = {"op": "tensor", "from": "base", "name": "x", "shape": [2], "dtype": "F32"}
    rules = [
        rule({"op": "invert", "of": {"op": "gather_rows", "ids": "ids", "of": x}}, format="FP32", encode="copy_words"),
        {"object": "ids", "value": {**x, "name": "ids", "shape": [1], "dtype": "I32"}, "format": "I32", "encode": "copy_words"},
    ]  # fmt: skip
    assert bound(document(rules), {"base": base})[0] == ["source.id_out_of_range"]
