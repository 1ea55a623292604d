"""Compiled decoders against the plain ones on random words, scales without a finite value among them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.compiled import spread
from ninfer_core.schemes.form import Form
from tests.schemes.integer.vectors import BY_NAME

Shape = tuple[int, ...]
_SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 65504, 2**-24], np.float32)


def random_parts(form: Form, shape: Shape, params: dict[str, Any], seed: int) -> dict[str, NDArray[Any]]:
    """Every part of the form in its first dtype: any words; floats that are mostly numbers."""
    rng = np.random.default_rng(seed)
    parts: dict[str, NDArray[Any]] = {}
    complete = run.complete(form, params)
    for part in form.parts:
        size = form.stored(shape, complete)[part.name]
        dtype = np.dtype(part.dtypes[0])
        if part.name == "g_idx":
            parts[part.name] = rng.integers(0, form.stored(shape, complete)["scales"][0], size).astype(dtype)
        elif part.name == "zero_points" and params.get("zero_points") == "float":
            parts[part.name] = rng.normal(8, 4, size).astype(parts["scales"].dtype)
        elif dtype.kind == "f":
            numbers = rng.normal(0, 1, size).astype(np.float32)
            special = rng.random(size) < 0.1
            parts[part.name] = np.where(special, rng.choice(_SPECIAL, size), numbers).astype(dtype)
        elif part.name == "weight_shape":
            parts[part.name] = np.array(shape, dtype)
        else:
            words = rng.bytes(int(np.prod(size)) * dtype.itemsize)
            parts[part.name] = np.frombuffer(words, dtype).reshape(size)
    return parts


@st.composite
def gptq(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    bits = draw(st.sampled_from((2, 3, 4, 8)))
    shape = (32 * draw(st.integers(0, 3)), 32 * draw(st.integers(0, 3)))
    drop = () if draw(st.booleans()) and shape[0] else ("g_idx",)
    return shape, {"bits": bits, "group_size": draw(st.sampled_from((-1, 7, 32, 10**15)))}, drop


@st.composite
def awq(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    size = draw(st.sampled_from((-1, 8, 24, 32)))
    shape = (24 * 4 * draw(st.integers(0, 2)), 8 * draw(st.integers(0, 3)))
    return shape, {"group_size": size}, ()


@st.composite
def awq_gemv(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    (inputs, outputs), params, drop = draw(awq())
    return (
        (outputs, inputs),
        params | {"group_size": draw(st.sampled_from((-1, 3, 32, 64 if inputs % 64 == 0 else 8)))},
        drop,
    )


@st.composite
def ct_pack_quantized(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    params = {"bits": draw(st.integers(1, 8)), "group_size": draw(st.sampled_from((-1, 2, 5, 16, 10**15)))}
    drop = ("weight_zero_point",) if draw(st.booleans()) else ()
    return (draw(st.integers(0, 5)), draw(st.integers(0, 70))), params, drop


@st.composite
def matmulnbits(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    params = {
        "bits": draw(st.sampled_from((2, 4, 8))),
        "block_size": draw(st.sampled_from((4, 12, 16, 32))),
        "zero_points": draw(st.sampled_from(("packed", "float"))),
        "flat": draw(st.booleans()),
    }
    drop = ("zero_points",) if draw(st.booleans()) else ()
    return (draw(st.integers(0, 4)), draw(st.integers(0, 70))), params, drop


@st.composite
def bitsandbytes(draw: st.DrawFn) -> tuple[Shape, dict[str, Any], tuple[str, ...]]:
    params = {
        "block_size": draw(st.sampled_from((1, 6, 7, 64, 10**15))),
        "nested_block_size": draw(st.sampled_from((3, 256, 10**15))),
        "first_nibble": draw(st.sampled_from(("high", "low"))),
    }
    nested = ("absmax_u8", "nested_absmax", "nested_code", "offset")
    drop = nested if draw(st.booleans()) else ("absmax",)
    return (
        (draw(st.integers(0, 9)), draw(st.integers(0, 33))),
        params,
        (*drop, *(("code",) if draw(st.booleans()) else ())),
    )


REQUESTS = {
    "gptq": gptq(),
    "gptq_v2": gptq(),
    "awq": awq(),
    "awq_gemv": awq_gemv(),
    "ct_pack_quantized": ct_pack_quantized(),
    "matmulnbits": matmulnbits(),
    "bnb_nf4": bitsandbytes(),
    "bnb_fp4": bitsandbytes(),
}


def test_every_compiled_form_is_drawn() -> None:
    assert set(REQUESTS) == {name for name, form in BY_NAME.items() if form.fast is not None}


@pytest.mark.parametrize("name", REQUESTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_compiled_equals_plain(name: str, data: st.DataObject, seed: int) -> None:
    form = BY_NAME[name]
    shape, params, drop = data.draw(REQUESTS[name])
    parts = random_parts(form, shape, params, seed)
    for part in drop:
        del parts[part]
    plain = run.decode(form, parts, shape, params, plain=True)
    fast = run.decode(form, parts, shape, params)
    assert np.array_equal(fast.view(np.uint32), plain.view(np.uint32))
    assert set(plain.view(np.uint32)[np.isnan(plain)].tolist()) <= {0x7FC00000}
    run.check(form, parts, shape, params)  # total over any words


@pytest.mark.parametrize(
    ("name", "shape", "params"),
    [
        ("gptq", (96, 2080), {"bits": 3, "group_size": 32}),
        ("awq", (64, 2048), {"group_size": 16}),
        ("matmulnbits", (65, 1000), {"bits": 4, "zero_points": "float"}),
        ("bnb_nf4", (33, 1001), {"block_size": 64}),
    ],
)
def test_ranges_of_threads_cover_the_tensor(
    name: str, shape: Shape, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    form = BY_NAME[name]
    parts = random_parts(form, shape, params, 5)
    if "absmax" in parts:
        parts = {key: parts[key] for key in ("payload", "absmax")}
    monkeypatch.setattr(spread, "WORTH_A_THREAD", 1000)
    monkeypatch.setattr(spread, "processors", lambda: 5)
    plain = run.decode(form, parts, shape, params, plain=True)
    assert np.array_equal(run.decode(form, parts, shape, params).view(np.uint32), plain.view(np.uint32))
