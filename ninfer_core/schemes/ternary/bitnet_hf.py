"""BitNet checkpoints of transformers: four ternary rows in each byte, and one scale with two opposite meanings."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import refuse_shape
from ninfer_core.schemes.scales import FLOATS, binary32, sound_divisors, sound_scales
from ninfer_core.schemes.ternary.levels import ternary_of

_NAME: Final = "bitnet_hf"
DIVIDES: Final = "bitlinear"
MULTIPLIES: Final = "autobitlinear"
_PLACES: Final = 4  # two-bit codes of a byte: bits 2k of row r hold row r + k * rows


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2:
        raise refuse_shape(_NAME, shape, "[out, in]")
    return {"weight": (-(-shape[0] // _PLACES), shape[1]), "weight_scale": (1,)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    packed = stored.get("weight", ())
    if len(packed) != 2:
        raise refuse_shape(_NAME, packed, "weight [ceil(out/4), in]")
    return packed[0] * _PLACES, packed[1]


def _codes(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[4 * rows, in] codes 0 to 3, the rows of the lowest bits first."""
    return np.concatenate([packed >> np.uint8(2 * place) & np.uint8(3) for place in range(_PLACES)])


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Code minus one, over the scale (`bitlinear`) or times it (`autobitlinear`), in binary32 (5.7)."""
    levels = _codes(parts["weight"])[: shape[0]].astype(np.float32) - np.float32(1)
    scale = binary32(parts["weight_scale"]).reshape(())
    scaled: Values = levels / scale if params["linear_class"] == DIVIDES else levels * scale
    return scaled


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Ternary values keep their magnitude where a stored scale gives it; others take the rule of `ternary_of`.

    Raises: CannotEncode for values that are not finite.
    """
    levels, magnitude = ternary_of(_NAME, values)
    rows = -(-values.shape[0] // _PLACES)
    codes = np.zeros((_PLACES * rows, values.shape[1]), np.uint8)
    codes[: values.shape[0]] = (levels + 1).astype(np.uint8)
    packed = np.zeros((rows, values.shape[1]), np.uint8)
    for place in range(_PLACES):
        packed |= codes[place * rows : (place + 1) * rows] << np.uint8(2 * place)
    scale = _divisor(magnitude) if params["linear_class"] == DIVIDES else magnitude
    return {"weight": packed, "weight_scale": np.array([scale], np.float32)}


def _divisor(magnitude: np.float32) -> np.float32:
    """The binary32 divisor whose reciprocal is nearest to the magnitude: exactly it, where there is one."""
    one = np.float32(1)
    middle = one / magnitude
    if not np.isfinite(middle):  # a magnitude below the reciprocal of the largest number
        return np.finfo(np.float32).max
    near = (middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf)))
    return min(
        (number for number in near if number > 0),
        key=lambda number: abs(float(one / number) - float(magnitude)),
    )


def _codes_are_ternary(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    codes = _codes(parts["weight"])
    report(findings, "code_illegal", "weight", codes[: shape[0]] == 3, codes, "holds the code 3", "0, 1 or 2")
    spare = np.zeros(codes.shape, np.bool_)
    spare[shape[0] :] = codes[shape[0] :] != 0
    report(
        findings,
        "padding_nonzero",
        "weight",
        spare,
        codes,
        "holds codes of rows that do not exist",
        "zero bits",
    )


def _sound(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    rule = sound_divisors if params["linear_class"] == DIVIDES else sound_scales
    rule("weight_scale")(parts, shape, params, findings)


def _word(params: Params) -> tuple[Slice, ...]:
    rows = ("row r", "row r + rows", "row r + 2 rows", "row r + 3 rows")
    return tuple(Slice(name, 2) for name in rows)


BITNET_HF: Final = Form(
    name=_NAME,
    kind="file",
    summary="Ternary weights, four rows in a byte, with one scale that divides or multiplies.",
    axes=("out", "in"),
    parts=(
        Part(
            "weight", ("uint8",), "[ceil(O/4), I]", "two bits for each of four rows that lie ceil(O/4) apart"
        ),
        Part("weight_scale", FLOATS, "[1]", "divides for bitlinear, multiplies for autobitlinear"),
    ),
    parameters=(
        Parameter(
            "linear_class",
            "text",
            "`linear_class` of the quantization config: whether the scale divides or multiplies",
            choices=(DIVIDES, MULTIPLIES),
        ),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_codes_are_ternary, _sound),
    encode=encode,
    encoding="plain",
    oracle="transformers 5.24.0 integrations.bitnet",
    word=_word,
    notes="The table's 1.58 bits count neither padding nor scale; two bits are stored.",
)
