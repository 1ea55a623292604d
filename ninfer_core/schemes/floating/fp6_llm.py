"""FP6-LLM (TC-FPx): six-bit floats split into two and four bits and laid out for tensor cores.

Sixteen by sixteen blocks; the 32 lanes of a warp own eight values of a block each, so that a lane loads whole words.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes import small_floats
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import CannotEncode, refuse_shape
from ninfer_core.schemes.scales import binary32, divided, finite_source, largest, sound_scales

_NAME: Final = "fp6_llm"
_UNIT: Final = 64
_LANES: Final = 32
# Which element, counted from one as the tool does, has each place of a word from the top down (5.14).
LOW_ORDER: Final = (2, 6, 4, 8, 1, 5, 3, 7)
HIGH_ORDER: Final = (2, 6, 10, 14, 4, 8, 12, 16, 1, 5, 9, 13, 3, 7, 11, 15)

Codes = NDArray[np.uint8]
Lanes = NDArray[np.uint8]  # [blocks, 32, 8]
Words = NDArray[np.uint32]


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[0] % _UNIT or shape[1] % _UNIT:
        raise refuse_shape(_NAME, shape, f"[out, in], both in whole runs of {_UNIT}")
    return {"prepacked": (shape[0] * shape[1] * 6 // 8,), "scales": (shape[0],)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    packed, scales = stored.get("prepacked", ()), stored.get("scales", ())
    if len(packed) != 1 or not scales or not scales[0] or packed[0] * 8 % (6 * scales[0]):
        raise refuse_shape(_NAME, packed, "bytes of whole rows, and a scale for each row")
    return scales[0], packed[0] * 8 // (6 * scales[0])


def _to_lanes(codes: Codes) -> Lanes:
    """The eight values of each lane: rows 8 apart and columns 8 apart of a block, neighbours first."""
    rows, columns = codes.shape
    # row = 64 i + 16 k + 8 a + l, column = 16 j + 8 b + 2 t + c; block (i, j, k), lane 4 l + t
    split = codes.reshape(rows // 64, 4, 2, 8, columns // 16, 2, 4, 2)
    return split.transpose(0, 4, 1, 3, 6, 5, 2, 7).reshape(-1, _LANES, 8)


def _from_lanes(lanes: Lanes, shape: Shape) -> Codes:
    rows, columns = shape
    split = lanes.reshape(rows // 64, columns // 16, 4, 8, 4, 2, 2, 2)
    return split.transpose(0, 2, 6, 3, 1, 5, 4, 7).reshape(shape)


def _shift(place: int, count: int) -> np.uint32:
    """Where in a word the bits of the element at `place` of `count`, from the top down, begin."""
    return np.uint32(32 // count * (count - 1 - place))


def _collect(elements: Words, order: tuple[int, ...]) -> Words:
    words = np.zeros(elements.shape[:-1], np.uint32)
    for place, element in enumerate(order):
        words |= elements[..., element - 1] << _shift(place, len(order))
    return words


def _spread(words: Words, order: tuple[int, ...]) -> Words:
    elements = np.empty((*words.shape, len(order)), np.uint32)
    mask = np.uint32((1 << 32 // len(order)) - 1)
    for place, element in enumerate(order):
        elements[..., element - 1] = words >> _shift(place, len(order)) & mask
    return elements


def pack(codes: Codes) -> NDArray[np.uint8]:
    """The prepacked bytes of codes [out, in]: a quarter byte of each value, then half a byte of each."""
    lanes = _to_lanes(codes).astype(np.uint32)
    # Two blocks share a word of high bits: sixteen values of a lane, those of the first block first.
    pairs = lanes.reshape(-1, 2, _LANES, 8).transpose(0, 2, 1, 3).reshape(-1, _LANES, 16)
    high, low = _collect(pairs >> np.uint32(4), HIGH_ORDER), _collect(lanes & np.uint32(15), LOW_ORDER)
    return np.concatenate([high.reshape(-1), low.reshape(-1)]).astype("<u4").view(np.uint8)


def unpack(prepacked: NDArray[np.uint8], shape: Shape) -> Codes:
    """The codes [out, in] of prepacked bytes."""
    words = np.ascontiguousarray(prepacked).view("<u4").astype(np.uint32)
    first, blocks = shape[0] * shape[1] // 16, shape[0] * shape[1] // 256
    high = _spread(words[:first].reshape(-1, _LANES), HIGH_ORDER).reshape(-1, _LANES, 2, 8)
    low = _spread(words[first:].reshape(-1, _LANES), LOW_ORDER)
    lanes = high.transpose(0, 2, 1, 3).reshape(blocks, _LANES, 8) << np.uint32(4) | low
    return _from_lanes(lanes.astype(np.uint8), shape)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """The E3M2 value times the scale of its row, in binary32 (5.14)."""
    values = small_floats.decode(small_floats.E3M2, unpack(parts["prepacked"], shape))
    scaled: Values = values * binary32(parts["scales"])[:, None]
    return scaled


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The scale of a row is its largest magnitude over 28, stored as binary16; codes are nearest to the stored scale.

    Raises: CannotEncode for values that are not finite, or a row whose scale is beyond binary16.
    """
    top = largest(finite_source(_NAME, values), 1)
    scales = (top / np.float32(small_floats.E3M2.largest)).astype(np.float16)
    if not np.isfinite(scales).all():
        raise CannotEncode(f"{_NAME} stores scales as binary16, and a row's largest magnitude needs more")
    quotients = divided(values, np.broadcast_to(scales.astype(np.float32), values.shape))
    return {"prepacked": pack(small_floats.encode(small_floats.E3M2, quotients)), "scales": scales[:, 0]}


def _word(params: Params) -> tuple[Slice, ...]:
    return tuple(Slice(f"low bits of value {element}", 4) for element in reversed(LOW_ORDER))


FP6_LLM: Final = Form(
    name=_NAME,
    kind="file",
    summary="Six-bit floats (E3M2) in the order that tensor cores load them, one binary16 scale for each row.",
    axes=("out", "in"),
    parts=(
        Part("prepacked", ("uint8",), "[O*I*6/8]", "the high two bits of all values, then the low four bits"),
        Part("scales", ("float16",), "[O]", "the factor of each row"),
    ),
    parameters=(),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(sound_scales("scales"),),
    encode=encode,
    encoding="nearest",
    oracle="deepspeed 0.19.8 weight_matrix_prepacking, ml_dtypes 0.6.0",
    word=_word,
    notes=(
        "The catalogue splits each code into four and two bits and has no scale; the tool splits it into two (sign and "
        "top exponent bit) and four. The drawn word is one of the second region; a word of the first holds the high "
        "bits of sixteen values."
    ),
)
