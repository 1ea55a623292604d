"""bitsandbytes' four-bit tables NF4 and FP4 (scheme page 5.4): two codes a byte, the first one high, scales by blocks."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.integer.groups import one_nan
from ninfer_core.schemes.integer.tables import FP4_TABLE, NF4_TABLE, codes_of, encode, halves, zero_code
from ninfer_core.schemes.run import Refusal, refuse_parameter

_NESTED: Final = ("absmax_u8", "nested_absmax", "nested_code", "offset")


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts: values are taken flat. Raises: SchemeRefused."""
    for name in ("block_size", "nested_block_size"):
        if params[name] < 1:
            raise refuse_parameter("bitsandbytes", name, "a positive number", params[name])
    count = math.prod(shape)
    blocks = -(-count // params["block_size"])
    return {
        "payload": (-(-count // 2),),
        "code": (16,),
        "absmax": (blocks,),
        "absmax_u8": (blocks,),
        "nested_absmax": (-(-blocks // params["nested_block_size"]),),
        "nested_code": (256,),
        "offset": (1,),
    }


def _check_parts(parts: Parts, findings: Findings) -> None:
    """Scales come plain or nested, never both and never in part."""
    nested = [name for name in _NESTED if name in parts]
    if "absmax" in parts:
        for name in nested:
            message = f"{name} belongs to nested scales, but there are plain ones"
            findings.add("scheme.part_unknown", message, where={"part": name}, expected="absmax", found=name)
        return
    for name in _NESTED if nested else ("absmax",):
        if name not in parts:
            message = f"{name} is missing: neither plain nor nested scales are whole"
            findings.add("scheme.part_missing", message, where={"part": name}, expected=name, found="absent")


def scales_of(parts: Parts, params: Params) -> Values:
    """absmax of each block; nested, nested_code[u8] x nested_absmax + offset in binary32. Raises: SchemeRefused."""
    refusal = Refusal("bitsandbytes")
    _check_parts(parts, refusal.findings)
    refusal.settle()
    if "absmax" in parts:
        return parts["absmax"].astype(np.float32)
    blocks = len(parts["absmax_u8"])
    outer = np.repeat(parts["nested_absmax"], min(params["nested_block_size"], blocks))[:blocks]
    scales: Values = parts["nested_code"][parts["absmax_u8"]] * outer
    scales += parts["offset"]
    return scales


def _decode(table: Values, parts: Parts, shape: Shape, params: Params) -> Values:
    """table[code] x absmax, by the table of the file where it carries one. Raises: SchemeRefused."""
    scales = scales_of(parts, params)
    count, size = math.prod(shape), params["block_size"]
    code = parts.get("code", table)
    values = code[codes_of(parts["payload"], count, params["first_nibble"])]
    values *= np.repeat(scales, min(size, count))[:count]
    return one_nan(values, scales, code).reshape(shape)


def _fast(table: Values, parts: Parts, shape: Shape, params: Params) -> Values:
    """The same, compiled where blocks are whole bytes."""
    from ninfer_core.schemes.compiled.blocks import pairs

    count = math.prod(shape)
    size = min(params["block_size"], count + count % 2)
    if not count or size % 2:
        return _decode(table, parts, shape, params)
    scales, code = scales_of(parts, params), parts.get("code", table)
    both = code[codes_of(np.arange(256, dtype=np.uint8), 512, params["first_nibble"])].reshape(256, 2)
    values = pairs(parts["payload"], both, scales, size, count)
    return one_nan(values, scales, code).reshape(shape)


def _check(table: Values, parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    _check_parts(parts, findings)
    for name in ("absmax", "nested_absmax", "nested_code", "offset"):
        if name in parts:
            report_not_finite(findings, "scale_not_finite", name, parts[name])
    if "absmax" in parts:
        absmax = parts["absmax"]
        report(
            findings, "scale_sign_ignored", "absmax", np.signbit(absmax), absmax, "is negative", "0 or more"
        )
    elif all(name in parts and np.isfinite(parts[name]).all() for name in _NESTED):
        scales = scales_of(parts, params)
        wrong = ~np.isfinite(scales)
        report(
            findings,
            "scale_not_finite",
            "absmax_u8",
            wrong,
            scales,
            "gives NaN or infinity",
            "a finite number",
        )
    code = parts.get("code")
    if code is not None:
        report_not_finite(findings, "value_not_finite", "code", code)
        differs = code.view(np.uint32) != table.view(np.uint32)
        report(findings, "table_differs", "code", differs, code, "is not the published table", table.tolist())
    if math.prod(shape) % 2:
        _value, unused = halves(parts["payload"], params["first_nibble"])
        if unused not in (0, zero_code(table)):
            message = "payload has a nibble behind the last code that is neither 0 nor the code of 0"
            place = {"part": "payload", "byte": len(parts["payload"]) - 1}
            findings.add("scheme.padding_nonzero", message, where=place, expected=0, found=unused)


def _encode(table: Values, values: Values, params: Params) -> dict[str, Array]:
    """The nearest level of x / absmax, plain scales. Raises: CannotEncode."""
    return encode(values, table, params["block_size"], params["first_nibble"])


def word(params: Params) -> tuple[Slice, ...]:
    """The two codes of one byte."""
    low, high = ("i+1", "i+0") if params["first_nibble"] == "high" else ("i+0", "i+1")
    return Slice(low, 4), Slice(high, 4)


BNB_NF4 = Form(
    "bnb_nf4",
    "file",
    "bitsandbytes NF4: absmax T[q], T sixteen quantiles of the normal distribution, by blocks of the flat tensor",
    ("values",),
    (
        Part(
            "payload", ("uint8",), "[ceil(values/2)]", "codes, two a byte (`weight` of the file, taken flat)"
        ),
        Part("absmax", ("float32",), "[blocks]", "largest magnitude of each block", optional=True),
        Part(
            "code", ("float32",), "[16]", "the table (`quant_map`); absent, the published one", optional=True
        ),
        Part("absmax_u8", ("uint8",), "[blocks]", "nested: `absmax` as codes of nested_code", optional=True),
        Part(
            "nested_absmax",
            ("float32",),
            "[ceil(blocks/nested_block_size)]",
            "nested: scales of the scales",
            optional=True,
        ),
        Part(
            "nested_code",
            ("float32",),
            "[256]",
            "nested: the table of the scales (`nested_quant_map`)",
            optional=True,
        ),
        Part(
            "offset",
            ("float32",),
            "[1]",
            "nested: what is added to every scale (`nested_offset`)",
            optional=True,
        ),
    ),
    (
        Parameter("block_size", "integer", "values that share a scale", default=64),
        Parameter(
            "nested_block_size", "integer", "scales that share a scale where they are nested", default=256
        ),
        Parameter(
            "first_nibble",
            "text",
            "which half of a byte holds the first value",
            default="high",
            choices=("high", "low"),
        ),
    ),
    stored,
    partial(_decode, NF4_TABLE),
    "bitsandbytes 0.50.2 CPU dequantize_4bit, the data given as one row",
    rules=(partial(_check, NF4_TABLE),),
    encode=partial(_encode, NF4_TABLE),
    encoding="nearest",
    fast=partial(_fast, NF4_TABLE),
    word=word,
)
BNB_FP4 = replace(
    BNB_NF4,
    name="bnb_fp4",
    summary="bitsandbytes FP4: a float of one sign, two exponent and one mantissa bit, scaled by blocks",
    decode=partial(_decode, FP4_TABLE),
    rules=(partial(_check, FP4_TABLE),),
    encode=partial(_encode, FP4_TABLE),
    fast=partial(_fast, FP4_TABLE),
)
