"""I2_S of bitnet.cpp: blocks of 128 ternary codes in 32 bytes, one scale behind all of them."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import MAX_RANK, refuse_shape
from ninfer_core.schemes.scales import judge
from ninfer_core.schemes.structs.model import Array as ArrayType
from ninfer_core.schemes.structs.model import (
    Component,
    Declaration,
    Declared,
    Field,
    Leaf,
    PackedArray,
    Structure,
)
from ninfer_core.schemes.ternary.levels import ternary_of

_NAME: Final = "bitnet_i2_s"
_BLOCK: Final = 128
_BLOCK_BYTES: Final = 32
_SCALE_BYTES: Final = 4
_TAIL: Final = 32  # the scale and its padding


def _count(shape: Shape) -> int:
    count = 1
    for length in shape:
        count *= length
    if not shape or len(shape) > MAX_RANK or count % _BLOCK:
        raise refuse_shape(_NAME, shape, f"values in whole blocks of {_BLOCK}")
    return count


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    return {"payload": (_count(shape) // 4 + _TAIL,)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    payload = stored.get("payload", ())
    if len(payload) != 1 or payload[0] < _TAIL or payload[0] % _BLOCK_BYTES:
        raise refuse_shape(_NAME, payload, f"blocks of {_BLOCK_BYTES} bytes and {_TAIL} more")
    return ((payload[0] - _TAIL) * 4,)


def _codes(payload: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[blocks, 4, 32] codes: element j of a block is in byte j mod 32, the first 32 in the top bits."""
    packed = payload[:-_TAIL].reshape(-1, 1, _BLOCK_BYTES)
    shifts = np.array([6, 4, 2, 0], np.uint8).reshape(1, 4, 1)
    return packed >> shifts & np.uint8(3)


def _scale(payload: NDArray[np.uint8]) -> Values:
    tail = np.ascontiguousarray(payload[-_TAIL : _SCALE_BYTES - _TAIL])
    return tail.view("<f4").astype(np.float32)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Code minus one, times the scale, in binary32 (5.7)."""
    levels = _codes(parts["payload"]).astype(np.float32) - np.float32(1)
    scaled: Values = levels * _scale(parts["payload"])
    return scaled.reshape(shape)


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Ternary values keep their magnitude exactly; others take the rule of `ternary_of`.

    Raises: CannotEncode for values that are not finite.
    """
    levels, magnitude = ternary_of(_NAME, values)
    codes = (levels + 1).astype(np.uint8).reshape(-1, 4, _BLOCK_BYTES)
    packed = (
        codes[:, 0] << np.uint8(6) | codes[:, 1] << np.uint8(4) | codes[:, 2] << np.uint8(2) | codes[:, 3]
    )
    tail = np.zeros(_TAIL, np.uint8)
    tail[:_SCALE_BYTES] = np.array([magnitude], "<f4").view(np.uint8)
    return {"payload": np.concatenate([packed.reshape(-1), tail])}


def _sound(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    payload = parts["payload"]
    codes = _codes(payload).reshape(-1)
    report(findings, "code_illegal", "payload", codes == 3, codes, "holds the code 3", "0, 1 or 2")
    scale = _scale(payload)
    judge("payload", scale, scale, findings, byte=payload.size - _TAIL)
    spare = np.zeros(payload.shape, np.bool_)
    spare[_SCALE_BYTES - _TAIL :] = payload[_SCALE_BYTES - _TAIL :] != 0
    report(
        findings, "padding_nonzero", "payload", spare, payload, "holds bytes behind the scale", "zero bytes"
    )


def _declare(shape: Shape, params: Params) -> Declared:
    four = tuple(Component(f"code_{place}", 2) for place in (96, 64, 32, 0))
    fields = (
        Field(
            "codes",
            PackedArray(four, _count(shape) // 4),
            doc="Element j, j + 32, j + 64 and j + 96 of a block.",
        ),
        Field("scale", Leaf("FLOAT")),
        Field("padding", ArrayType(Leaf("UINT8"), _TAIL - _SCALE_BYTES)),
    )
    return Declared((Declaration(Structure(fields), name=_NAME),), 0)


def _word(params: Params) -> tuple[Slice, ...]:
    return tuple(Slice(f"value j + {place}", 2) for place in (96, 64, 32, 0))


BITNET_I2_S: Final = Form(
    name=_NAME,
    kind="file",
    summary="Ternary weights in blocks of 128 and one binary32 scale behind them; two bits for each weight.",
    axes=("values",),
    parts=(Part("payload", ("uint8",), "[n/4 + 32]", "codes, scale, padding"),),
    parameters=(),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_sound,),
    encode=encode,
    encoding="plain",
    oracle="two readers of the public encoder's layout",
    declare=_declare,
    word=_word,
    notes="Newer builds also write an interleave of four rows, which nothing in the file tells apart from this order.",
)
