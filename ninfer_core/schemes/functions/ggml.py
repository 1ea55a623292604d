"""Decoders of the GGML types without codebooks, and of those with one level table (scheme specification, section 4)."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes.form import Array, Params
from ninfer_core.schemes.functions.build import Tensor
from ninfer_core.schemes.functions.frame import Frame, Given, Recipe
from ninfer_core.schemes.functions.ggml_pieces import (
    bits,
    blocks,
    centred,
    column,
    in_turn,
    nibbles,
    pairs,
    planes,
    scaled,
    six_bit_scales,
    with_high,
)
from ninfer_core.schemes.ggml.tables import DOUBLED_E2M1, grid, nvfp4_scales, stq1_0_lanes


def bf16(frame: Frame) -> Tensor:
    """The upper half of a binary32 word."""
    return frame.real("value")


def q4_0(frame: Frame) -> Tensor:
    """d (q - 8)."""
    return _centred_nibbles(frame, nibbles(frame.build, frame["qs"], 1), 8)


def q4_1(frame: Frame) -> Tensor:
    """d q + m."""
    return _with_offset(frame, nibbles(frame.build, frame["qs"], 1))


def q5_0(frame: Frame) -> Tensor:
    """d (q - 16)."""
    return _centred_nibbles(frame, _five_bits(frame), 16)


def q5_1(frame: Frame) -> Tensor:
    """d q + m."""
    return _with_offset(frame, _five_bits(frame))


def q8_0(frame: Frame) -> Tensor:
    """d q."""
    return frame.build.multiply(column(frame, "d"), frame.real("qs"))


def q1_0(frame: Frame) -> Tensor:
    """d where the bit is set, else -d."""
    build, d = frame.build, column(frame, "d")
    is_set = build.equal(build.cast(bits(build, frame["bits"], blocks(frame), 16), "INT32"), 1)
    return build.where(is_set, d, build.op("Neg", d))


def mxfp4(frame: Frame) -> Tensor:
    """Twice E2M1 times 2**(e - 128): powers of two from a table, because e = 255 is none to E8M0."""
    build, n = frame.build, blocks(frame)
    levels = frame.looked_up("levels", nibbles(build, frame["qs"], 1))
    return build.multiply(levels, build.reshape(frame.looked_up("powers", frame["e"]), n, 1))


def nvfp4(frame: Frame) -> Tensor:
    """Twice E2M1 times half the scale of each sixteen."""
    build, n = frame.build, blocks(frame)
    levels = frame.looked_up("levels", nibbles(build, frame["qs"], 2))
    return build.multiply(levels, build.reshape(frame.looked_up("scales", frame["scale"]), n, 4, 1))


def q2_k(frame: Frame) -> Tensor:
    """(d L) q - (dmin M)."""
    build, n = frame.build, blocks(frame)
    packed = frame["scales"]
    codes = build.cast(pairs(build, frame["qs"], n), "FLOAT")
    return _affine(frame, build.mask(packed, 15), build.right(packed, 4), codes, 16)


def q3_k(frame: Frame) -> Tensor:
    """(d sc) (q - 4 + 4 h)."""
    build, n = frame.build, blocks(frame)
    high = planes(build, frame["hmask"], (n, 32), range(8), 1)
    codes = with_high(build, pairs(build, frame["qs"], n), high, 2)
    low = nibbles(build, build.cut(frame["scales"], 1, 0, 8), 1)
    top = planes(build, build.cut(frame["scales"], 1, 8, 12), (n, 4), (0, 2, 4, 6), 2)
    steps = build.multiply(column(frame, "d"), centred(build, with_high(build, low, top, 4), 32))
    return scaled(build, steps, centred(build, codes, 4), n, 16)


def q4_k(frame: Frame) -> Tensor:
    """(d sc) q - (dmin mn), by 32."""
    scales, mins = six_bit_scales(frame.build, frame["scales"])
    return _affine(frame, scales, mins, frame.build.cast(_k_nibbles(frame), "FLOAT"), 8)


def q5_k(frame: Frame) -> Tensor:
    """As Q4_K with a fifth bit of every code in `qh`."""
    build, n = frame.build, blocks(frame)
    high = planes(build, frame["qh"], (n, 32), range(8), 1)
    scales, mins = six_bit_scales(build, frame["scales"])
    codes = build.cast(with_high(build, _k_nibbles(frame), high, 4), "FLOAT")
    return _affine(frame, scales, mins, codes, 8)


def q6_k(frame: Frame) -> Tensor:
    """(d sc) (q - 32), by sixteen."""
    build, n = frame.build, blocks(frame)
    low = build.reshape(nibbles(build, build.reshape(frame["ql"], n, 2, 64), 2), n, 256)
    codes = with_high(build, low, pairs(build, frame["qh"], n), 4)
    steps = build.multiply(column(frame, "d"), frame.real("scales"))
    return scaled(build, steps, centred(build, codes, 32), n, 16)


def iq4_nl(frame: Frame) -> Tensor:
    """d T[q]."""
    build = frame.build
    return build.multiply(column(frame, "d"), frame.looked_up("levels", nibbles(build, frame["qs"], 1)))


def iq4_xs(frame: Frame) -> Tensor:
    """(d ls) T[q] by 32."""
    build, n = frame.build, blocks(frame)
    low = in_turn(build, frame["scales_l"], n, 4)
    high = build.cast(build.fields(frame["scales_h"], range(0, 16, 2), 2, (n,)), "UINT8")
    steps = build.multiply(column(frame, "d"), centred(build, with_high(build, low, high, 4), 32))
    return scaled(build, steps, frame.looked_up("levels", nibbles(build, frame["qs"], 2)), n, 8)


def tq1_0(frame: Frame) -> Tensor:
    """d (digit - 1): digit k of a byte is three times the byte's fraction of 256 after k places."""
    build, n = frame.build, blocks(frame)
    parts = []
    for packed, m, count in (
        (build.cut(frame["qs"], 1, 0, 32), 32, 5),
        (build.cut(frame["qs"], 1, 32, 48), 16, 5),
        (frame["qh"], 4, 4),
    ):
        powers = build.constant([[3**place] for place in range(count)], "UINT32")
        moved = build.multiply(build.reshape(build.cast(packed, "UINT32"), n, 1, m), powers)
        digit = build.right(build.multiply(build.mask(moved, 255), 3), 8)
        parts.append(build.reshape(digit, n, count * m))
    return build.multiply(column(frame, "d"), centred(build, build.concat(parts, 1), 1))


def tq2_0(frame: Frame) -> Tensor:
    """d (q - 1)."""
    return _centred_nibbles(frame, pairs(frame.build, frame["qs"], blocks(frame)), 1)


def stq1_0(frame: Frame) -> Tensor:
    """d times the lanes of a code and a sign; lane p of group g is element 64 (g / 16) + g mod 16 + 16 p."""
    build, n = frame.build, blocks(frame)
    codes = in_turn(build, frame["codes"], n, 32)
    index = with_high(build, codes, bits(build, frame["signs"], n, 8), 4)
    lanes = build.reshape(frame.looked_up("lanes", index), n, 4, 16, 4)
    placed = build.reshape(build.transpose(lanes, 0, 1, 3, 2), n, 256)
    return build.multiply(column(frame, "d"), placed)


def _centred_nibbles(frame: Frame, codes: Tensor, zero: int) -> Tensor:
    return frame.build.multiply(column(frame, "d"), centred(frame.build, codes, zero))


def _with_offset(frame: Frame, codes: Tensor) -> Tensor:
    build = frame.build
    products = build.multiply(column(frame, "d"), build.cast(codes, "FLOAT"))
    return build.add(products, column(frame, "m"))


def _five_bits(frame: Frame) -> Tensor:
    build, n = frame.build, blocks(frame)
    high = build.cast(build.fields(frame["qh"], range(32), 1, (n,)), "UINT8")
    return with_high(build, nibbles(build, frame["qs"], 1), high, 4)


def _k_nibbles(frame: Frame) -> Tensor:
    build, n = frame.build, blocks(frame)
    return build.reshape(nibbles(build, build.reshape(frame["qs"], n, 4, 32), 2), n, 256)


def _affine(frame: Frame, scales: Tensor, mins: Tensor, codes: Tensor, count: int) -> Tensor:
    """(d scale) code - (dmin min), the product rounded before the difference."""
    build, n = frame.build, blocks(frame)
    steps = build.multiply(column(frame, "d"), build.cast(scales, "FLOAT"))
    offsets = build.multiply(column(frame, "dmin"), build.cast(mins, "FLOAT"))
    return build.subtract(scaled(build, steps, codes, n, count), build.reshape(offsets, n, count, 1))


def _levels(_params: Params, _given: Given) -> Mapping[str, Array]:
    return {"levels": grid("iq4nl")}


def _mxfp4_tables(_params: Params, _given: Given) -> Mapping[str, Array]:
    powers = np.ldexp(np.float32(1), np.arange(256) - 128).astype(np.float32)
    return {"levels": DOUBLED_E2M1.astype(np.float32), "powers": powers}


def _nvfp4_tables(_params: Params, _given: Given) -> Mapping[str, Array]:
    return {"levels": DOUBLED_E2M1.astype(np.float32), "scales": nvfp4_scales()}


def _lanes(_params: Params, _given: Given) -> Mapping[str, Array]:
    return {"lanes": stq1_0_lanes()}


GGML: Final[Mapping[str, Recipe]] = {
    "ggml_bf16": Recipe(bf16),
    "ggml_q4_0": Recipe(q4_0),
    "ggml_q4_1": Recipe(q4_1),
    "ggml_q5_0": Recipe(q5_0),
    "ggml_q5_1": Recipe(q5_1),
    "ggml_q8_0": Recipe(q8_0),
    "ggml_q1_0": Recipe(q1_0),
    "ggml_mxfp4": Recipe(mxfp4, _mxfp4_tables),
    "ggml_nvfp4": Recipe(nvfp4, _nvfp4_tables),
    "ggml_q2_k": Recipe(q2_k),
    "ggml_q3_k": Recipe(q3_k),
    "ggml_q4_k": Recipe(q4_k),
    "ggml_q5_k": Recipe(q5_k),
    "ggml_q6_k": Recipe(q6_k),
    "ggml_iq4_nl": Recipe(iq4_nl, _levels),
    "ggml_iq4_xs": Recipe(iq4_xs, _levels),
    "ggml_tq1_0": Recipe(tq1_0),
    "ggml_tq2_0": Recipe(tq2_0),
    "stq1_0": Recipe(stq1_0, _lanes),
}
