"""Every stored vector of a form that has an ONNX decoder, as the request that it is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes import floating, ggml, lattice, rotated, run, ternary
from ninfer_core.schemes.form import Form, Shape
from ninfer_core.schemes.lattice import trellis
from tests.schemes.integer import vectors as integer
from tests.schemes.vectors import Case, cases

Parts = dict[str, NDArray[Any]]
FORMS = {form.name: form for room in (floating, ggml, lattice, rotated, ternary) for form in room.FORMS}


@dataclass(frozen=True)
class Request:
    """Stored arrays and what is to be known to decode them."""

    name: str
    form: Form
    parts: Parts
    shape: Shape
    params: dict[str, Any]


def _request(form_name: str, case: Case, shape: Shape | None = None, **params: Any) -> Request:
    form = FORMS[form_name]
    parts = {part.name: case.arrays[part.name] for part in form.parts if part.name in case.arrays}
    if shape is None:
        shape = run.implied_shape(form, parts, params)
    return Request(f"{form_name}-{case.name}", form, parts, shape, params)


def _ggml() -> Iterator[Request]:
    for form in ggml.FORMS:
        for case in cases(form.name):
            yield _request(form.name, case)


def _small_floats() -> Iterator[Request]:
    for case in cases("fp8"):
        dialect = case.name.split("_")[0]
        yield _request("fp8", case, dialect=dialect, **case.params and {"axis": case.params["axis"]})
    for case in cases("mxfp4"):
        if "weight_packed" in case.arrays:
            yield _request("mxfp4", case)
    for case in cases("mxfp6"):
        if "weight_packed" in case.arrays:
            yield _request(f"mxfp6_{case.name.split('_')[0]}", case)
    for case in cases("nvfp4"):
        name = {"compressed_tensors": "nvfp4_ct", "modelopt": "nvfp4_modelopt"}.get(case.name)
        if name:
            yield _request(name, case)
    for case in cases("fp6_llm"):
        yield _request("fp6_llm", case)


def _others() -> Iterator[Request]:
    for case in cases("bitnet"):
        if "payload" in case.arrays:
            yield _request("bitnet_i2_s", case)
        else:
            yield _request("bitnet_hf", case, linear_class=case.params["linear_class"])
    for case in cases("paretoq"):
        yield _request("paretoq", case, w_bits=case.params["w_bits"])
    for case in cases("binary_xnor"):
        yield _request("binary_xnor", case, case.arrays["expected"].shape)
    for name in ("eetq", "smoothquant"):
        for case in cases(name):
            yield _request(name, case)
    for case in cases("quarot"):
        for sides in ("none", "input", "both"):
            yield _request("quarot", case, unrotate=sides)
    for case in cases("aqlm"):
        if "codebooks" in case.arrays:
            params = {name: case.params[name] for name in ("num_codebooks", "out_group", "in_group")}
            yield _request("aqlm", case, bits=case.params["nbits"], **params)


def _lattice() -> Iterator[Request]:
    for case in cases("exl2"):
        groups = [number for pair in case.params["groups"] for number in pair]
        yield _request("exl2", case, groups=groups)
    for case in cases("exl3"):
        one = _request("exl3", case, bits=case.params["bits"])
        if case.params["codebook"] in trellis.MARKERS:
            marker = np.array(trellis.MARKERS[case.params["codebook"]], np.uint32).view(np.int32)
            one.parts[case.params["codebook"]] = marker
        yield one
    rng = np.random.default_rng(1)
    for case in cases("spqr"):
        shape = case.arrays["expected"].shape
        yield _request("spqr", case, shape, outliers=len(case.arrays["col_vals"]))
        ordered = _request("spqr", case, shape, outliers=len(case.arrays["col_vals"]))
        ordered.parts["in_perm"] = rng.permutation(shape[1]).astype(np.int16)
        yield replace(ordered, name=f"{ordered.name}-ordered")
    for case in cases("quip_sharp_e8p"):
        yield _request("quip_sharp_e8p", case)


def _integer() -> Iterator[Request]:
    for case in integer.cases():
        yield Request(case.name, case.form, case.parts, case.expected.shape, case.params)


@cache
def requests() -> tuple[Request, ...]:
    """All of them."""
    return tuple(one for room in (_ggml, _small_floats, _others, _lattice, _integer) for one in room())


def more() -> Iterator[Request]:
    """What the vectors do not have: layouts, ragged groups and parts of other types, on random words."""
    rng = np.random.default_rng(6)
    half = np.float16

    def words(*shape: int, dtype: Any = np.uint8) -> NDArray[Any]:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)

    yield Request(
        "mxfp6-bytes",
        FORMS["mxfp6_e3m2"],
        {"weight_packed": words(2, 64), "weight_scale": words(2, 2)},
        (2, 64),
        {"layout": "bytes"},
    )
    yield Request(
        "mxfp4-blocks",
        FORMS["mxfp4"],
        {"weight_packed": words(2, 2, 16), "weight_scale": words(2, 2)},
        (2, 64),
        {"layout": "blocks"},
    )
    yield Request(
        "fp8-blocks",
        FORMS["fp8"],
        {"payload": words(5, 7), "scale": rng.standard_normal((3, 2)).astype(np.float32)},
        (5, 7),
        {"block_shape": [2, 4]},
    )
    yield Request(
        "fp8-e8m0",
        FORMS["fp8"],
        {"payload": words(4, 6), "scale": words(2, 1)},
        (4, 6),
        {"block_shape": [2, 0]},
    )
    gptq = integer.BY_NAME["gptq"]
    yield Request(
        "gptq-ragged",
        gptq,
        {
            "qweight": words(12, 32, dtype=np.int32),
            "qzeros": words(2, 4, dtype=np.int32),
            "scales": words(2, 32, dtype=np.uint16).view(half),
        },
        (96, 32),
        {"bits": 4, "group_size": 64},
    )
    brain = {
        "qweight": words(4, 32, dtype=np.int32),
        "qzeros": words(1, 4, dtype=np.int32),
        "scales": words(1, 32, dtype=np.uint16).view(ml_dtypes.bfloat16),
    }
    yield Request("gptq-bfloat16", gptq, brain, (32, 32), {"bits": 4, "group_size": 32})
    gemv = integer.BY_NAME["awq_gemv"]
    yield Request(
        "awq_gemv",
        gemv,
        {
            "qweight": words(4, 16, dtype=np.int32),
            "qzeros": words(4, 4, dtype=np.int32),
            "scales": words(4, 32, dtype=np.uint16).view(half),
        },
        (4, 128),
        {"group_size": 32},
    )
    ct = integer.BY_NAME["ct_pack_quantized"]
    yield Request(
        "ct-ragged",
        ct,
        {
            "weight_packed": words(3, 4, dtype=np.int32),
            "weight_scale": rng.standard_normal((3, 2)).astype(np.float32),
        },
        (3, 40),
        {"bits": 3, "group_size": 32},
    )
    bnb = integer.BY_NAME["bnb_nf4"]
    yield Request(
        "bnb-own-table",
        bnb,
        {"payload": words(35), "absmax": rng.standard_normal(2).astype(np.float32)},
        (7, 10),
        {"first_nibble": "low"},
    )
    linear = integer.BY_NAME["linear_onnx"]
    yield Request(
        "linear-int2",
        linear,
        {
            "payload": words(4),
            "scale": rng.standard_normal((5, 2)).astype(np.float32),
            "zero_point": np.ones((5, 2), np.int64),
        },
        (5, 3),
        {"type": "int2", "axis": -1, "block_size": 2},
    )
    yield Request(
        "linear-scalar", linear, {"payload": words(1), "scale": np.ones(1, np.float32)}, (), {"type": "int8"}
    )
    for name in ("ggml_q4_k", "ggml_iq2_xxs", "bitnet_i2_s"):
        form = FORMS[name]
        shape = (2, 512)
        (size,) = form.stored(shape, {})["payload"]
        yield Request(f"{name}-rows", form, {"payload": words(size)}, shape, {})
    empty = FORMS["ggml_q4_0"]
    yield Request("no-blocks", empty, {"payload": words(0)}, (0, 32), {})
