"""AQLM: each group of weights is a sum of vectors, one from each of several codebooks."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import Form, Parameter, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import Refusal, refuse_parameter, refuse_shape

_NAME: Final = "aqlm"
_MOST: Final = 64  # codebooks; releases have one to eight
_LARGEST: Final = 1 << 12  # values of one group


def _geometry(params: Params) -> tuple[int, int, int, int]:
    """Codebooks, bits, outputs and inputs of a group. Raises: SchemeRefused."""
    books, bits, out_group, in_group = (
        params[name] for name in ("num_codebooks", "bits", "out_group", "in_group")
    )
    for name, number, most in (
        ("num_codebooks", books, _MOST),
        ("bits", bits, 16),
        ("out_group", out_group, _LARGEST),
        ("in_group", in_group, _LARGEST),
    ):
        if not 1 <= number <= most:
            raise refuse_parameter(_NAME, name, f"1 to {most}", number)
    return books, bits, out_group, in_group


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    books, bits, out_group, in_group = _geometry(params)
    if len(shape) != 2 or shape[0] % out_group or shape[1] % in_group:
        raise refuse_shape(_NAME, shape, f"[out, in] in whole groups of {out_group} x {in_group}")
    rows = shape[0] // out_group
    return {
        "codes": (rows, shape[1] // in_group, books),
        "codebooks": (books, 1 << bits, out_group, in_group),
        "scales": (rows, 1, 1, 1),
    }


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    _, _, out_group, in_group = _geometry(params)
    codes = stored.get("codes", ())
    if len(codes) != 3:
        raise refuse_shape(_NAME, codes, "codes [out/out_group, in/in_group, codebooks]")
    return codes[0] * out_group, codes[1] * in_group


def _outside(codes: NDArray[Any], bits: int) -> NDArray[np.bool_]:
    half = 1 << (bits - 1)
    wide = codes.astype(np.int32)
    outside: NDArray[np.bool_] = (wide < -half) | (wide >= half)
    return outside


def _codes_in_range(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    bits = params["bits"]
    codes = parts["codes"]
    outside = _outside(codes, bits)
    message = f"holds codes of more than {bits} bits"
    report(findings, "index_out_of_range", "codes", outside, codes, message, f"{bits} bits", limit=1 << bits)


def _finite(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "scales", parts["scales"])
    report_not_finite(findings, "value_not_finite", "codebooks", parts["codebooks"])


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Sums in the order of the codebooks, in binary32, then times the scale (5.18).

    Raises: SchemeRefused for a code that its codebook does not have.
    """
    books, bits, _, _ = _geometry(params)
    refusal = Refusal(_NAME)
    _codes_in_range(parts, shape, params, refusal.findings)
    refusal.settle()
    codes = parts["codes"].astype(np.int32) & np.int32((1 << bits) - 1)  # files hold them wrapped to signed
    tables = parts["codebooks"]
    total = tables[0][codes[..., 0]].astype(np.float32)  # [rows, groups, out_group, in_group]
    for book in range(1, books):
        total += tables[book][codes[..., book]].astype(np.float32)
    total *= parts["scales"].astype(np.float32)
    return np.ascontiguousarray(total.transpose(0, 2, 1, 3)).reshape(shape)


def _word(params: Params) -> tuple[Slice, ...]:
    return (Slice("code", params["bits"]),)


AQLM: Final = Form(
    name=_NAME,
    kind="file",
    summary="Sums of codebook vectors: a code for each group of weights in each codebook, one scale for each output.",
    axes=("out", "in"),
    parts=(
        Part("codes", ("int8", "int16"), "[O/out_group, I/in_group, C]", "codes wrapped to signed integers"),
        Part("codebooks", ("float16",), "[C, 2^bits, out_group, in_group]", "the vectors of each codebook"),
        Part("scales", ("float16",), "[O/out_group, 1, 1, 1]", "one factor for each row of groups"),
    ),
    parameters=(
        Parameter("num_codebooks", "integer", "codebooks that are summed"),
        Parameter("bits", "integer", "bits of one code: 8 with int8, 16 with int16 in most releases"),
        Parameter("out_group", "integer", "outputs of one group", 1),
        Parameter("in_group", "integer", "inputs of one group", 8),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_codes_in_range, _finite),
    oracle="aqlm 1.1.7",
    arithmetic="binary32 sums in the order of the codebooks; another order of sums differs by up to 1e-5",
    word=_word,
    notes="Its tool finds codes by beam search, so there is no encoder here.",
)
