"""Portable encoders: the bytes of the arrays' encoder, in both engines, on levels, ties, edges and what is no number."""

from functools import cache

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.functions.evaluate import FunctionFailed, run_onnxruntime, run_reference
from ninfer_core.schemes.literal import FORMS, SPECS
from ninfer_core.schemes.profiles.encode import encode
from ninfer_core.schemes.profiles.functions import encoder_of, with_functions
from ninfer_core.schemes.profiles.model import Quantization
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import CannotEncode
from tests.schemes.literal.cases import Literal, literals
from tests.schemes.profiles.strategies import profiles

Floats = NDArray[np.float32]
BY_NAME = {form.name: form for form in FORMS}
WITHOUT = {  # literal forms that have an encoder of arrays and none of operators
    "float6_e3m2_tensor_1000",  # one declaration for any count
}
CASES = [case for case in literals() if BY_NAME[case.form].encode and case.form not in WITHOUT]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.form)


@cache
def _encoder(form: str) -> tuple[Quantization, onnx.FunctionProto]:
    case = next(case for case in CASES if case.form == form)
    quantization = case.quantization
    return quantization, encoder_of(quantization, translate(quantization, case.shape), case.shape)


def test_every_other_form_has_one() -> None:
    for case in literals():
        declared = with_functions(case.quantization, case.shape)
        root = declared.declarations[declared.root]
        assert (root.encoder is not None) == (case in CASES), case.form
        if case in CASES:  # that it fits the type and the decoder is judged beside the other literal tests
            function = onnx.FunctionProto.FromString(root.encoder or b"")
            assert len(function.input) == len(function.output) == 1
            assert {node.domain for node in function.node} == {""}


def _in_type(quantization: Quantization, values: Floats) -> tuple[NDArray[np.generic], Floats]:
    """The values as the decoder's type has them, and those widened again."""
    if quantization.data_type != "FLOAT16":
        return values, values
    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    return halves, halves.astype(np.float32)


def _same(quantization: Quantization, function: onnx.FunctionProto, values: Floats, engines: int = 2) -> bool:
    """The same bytes, or refused by all; returns whether there were bytes."""
    taken, wide = _in_type(quantization, values)
    try:
        expected = encode(quantization, wide)
    except CannotEncode:
        for engine in (run_reference, run_onnxruntime)[:engines]:
            with pytest.raises(FunctionFailed):
                engine(function, [taken])
        return False
    for engine in (run_reference, run_onnxruntime)[:engines]:
        found = engine(function, [taken])
        assert found.dtype == np.uint8
        assert np.array_equal(found, expected)
    return True


def _levels(case: Literal, random: np.random.Generator) -> Floats:
    payload = case.payload
    if case.form not in ("spqr_literal", "tq2_0_literal"):  # whose random bytes point outside
        drawn = random.integers(0, 256, payload.size, dtype=np.uint8)
        payload = np.where(random.random(payload.size) < 0.5, drawn, payload)
    decoded = run.decode(BY_NAME[case.form], {"payload": payload}, case.shape, case.params)
    levels = np.unique(decoded[np.isfinite(decoded) & (np.abs(decoded) < 1e30)])
    return levels[:: max(1, levels.size // 300)]


def _filled(pool: Floats, case: Literal, random: np.random.Generator) -> Floats:
    size = int(np.prod(case.shape))
    drawn = pool[random.permutation(max(size, pool.size))[:size] % pool.size].reshape(case.shape)
    if case.form == "spqr_literal":  # as many outliers as the type holds
        drawn.reshape(-1)[[3, 90, 100]] = [7.5, -6.25, 65504]
    return np.abs(drawn) if case.form == "log4_unsigned" else drawn


@EACH
def test_levels_ties_and_small_numbers(case: Literal) -> None:
    quantization, function = _encoder(case.form)
    random = np.random.default_rng(2026)
    levels = _levels(case, random)
    ties = levels[:-1] + np.diff(levels) / np.float32(2)
    spread = np.float32(np.abs(levels).max()) or np.float32(1)
    pool = np.concatenate([
        levels, ties, np.nextafter(ties, np.float32(-np.inf)), np.nextafter(ties, np.float32(np.inf)),
        random.normal(0, spread, 200), [0, -0.0, 1e-45, -1e-45, 1.1754944e-38, -3e-39, 3e-8, -6e-8],
    ]).astype(np.float32)  # fmt: skip
    if case.form == "spqr_literal":
        pool = pool[np.abs(pool) < 6]
    assert _same(quantization, function, _filled(pool, case, random))


@EACH
def test_edges_and_what_is_no_number(case: Literal) -> None:
    quantization, function = _encoder(case.form)
    random = np.random.default_rng(7)
    usual = _filled(np.asarray([0.5, -1.25, 3e-5, 0.0], np.float32), case, random)
    large = _filled(np.asarray([65504, -3e4, 448.1, -464, 464, 6, 28.1, 1e-30], np.float32), case, random)
    _same(quantization, function, large, 1)
    for number, odd in enumerate((3.4028235e38, np.inf, np.nan, -np.nan)):
        values = usual.copy()
        values.reshape(-1)[5] = odd
        _same(quantization, function, values, 2 if number > 1 else 1)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(profiles(), st.integers(0, 2**32 - 1))
def test_random_profiles(drawn: tuple[Quantization, Shape], seed: int) -> None:
    quantization, shape = drawn
    try:
        function = encoder_of(quantization, translate(quantization, shape), shape)
    except CannotEncode:
        return
    random = np.random.default_rng(seed)
    values = np.round(random.normal(0, 4, shape), int(random.integers(0, 4))).astype(np.float32)
    _same(quantization, function, values, 1)


@pytest.mark.parametrize("shape", [(0,), (7,), (257,), (3, 5)])
def test_other_shapes(shape: Shape) -> None:
    held = 0
    values = np.abs(np.random.default_rng(3).normal(0, 0.02, shape)).astype(np.float32)
    for case in CASES:
        params = {**case.params, **({"outliers": 0} if case.form == "spqr_literal" else {})}
        try:
            quantization = SPECS[case.form].quantization(shape, run.complete(BY_NAME[case.form], params))
            declared = translate(quantization, shape)
        except run.SchemeRefused:
            continue
        held += _same(quantization, encoder_of(quantization, declared, shape), values, 1)
    assert held >= 10
