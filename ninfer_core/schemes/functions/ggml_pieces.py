"""Pieces of GGML blocks taken apart by standard operators (scheme specification, section 4, "Shared pieces").

`n` is the number of blocks everywhere.
"""

from collections.abc import Sequence

from ninfer_core.schemes.functions.build import Builder, Tensor
from ninfer_core.schemes.functions.frame import Frame


def blocks(frame: Frame) -> int:
    """How many blocks the payload has."""
    return frame.shapes["d" if "d" in frame else next(iter(frame.shapes))][0]


def column(frame: Frame, name: str) -> Tensor:
    """A binary16 number of each block as FLOAT [n, 1]."""
    return frame.real_as(name, blocks(frame), 1)


def nibbles(build: Builder, packed: Tensor, axis: int) -> Tensor:
    """All low nibbles, then all high ones, along `axis` (N32, where it has 16 bytes)."""
    return build.concat([build.mask(packed, 15), build.right(packed, 4)], axis)


def in_turn(build: Builder, packed: Tensor, n: int, count: int) -> Tensor:
    """Bytes [n, count] to nibbles [n, 2 count]: the low one of a byte, then its high one."""
    return build.reshape(build.fields(packed, (0, 4), 4, (n, count)), n, 2 * count)


def planes(build: Builder, packed: Tensor, shape: Sequence[int], lows: Sequence[int], width: int) -> Tensor:
    """Bytes [*outer, m] to [*outer, planes * m]: the bits at `lows[0]` of all bytes, then those at `lows[1]`, ..."""
    *outer, m = shape
    shifts = build.constant([[low] for low in lows], packed.element)
    codes = build.mask(build.right(build.reshape(packed, *outer, 1, m), shifts), (1 << width) - 1)
    return build.reshape(codes, *outer, len(lows) * m)


def pairs(build: Builder, packed: Tensor, n: int) -> Tensor:
    """P2: bytes [n, 64] to two-bit codes [n, 256]."""
    halves = build.reshape(packed, n, 2, 32)
    return build.reshape(planes(build, halves, (n, 2, 32), (0, 2, 4, 6), 2), n, 256)


def bits(build: Builder, packed: Tensor, n: int, count: int) -> Tensor:
    """Bytes [n, count] to bits [n, 8 count], low first."""
    return build.stream(packed, 1, 8 * count, (n,), count)


def with_high(build: Builder, low: Tensor, high: Tensor, shift: int) -> Tensor:
    """Codes whose bits from `shift` up are in another tensor."""
    return build.either(low, build.left(high, shift))


def centred(build: Builder, codes: Tensor, zero: int) -> Tensor:
    """Unsigned codes minus an integer, as FLOAT."""
    return build.cast(build.subtract(build.cast(codes, "INT32"), zero), "FLOAT")


def scaled(build: Builder, steps: Tensor, codes: Tensor, n: int, count: int, values: int = 256) -> Tensor:
    """FLOAT codes of a block times the steps [n, count] of its equal sub-blocks: [n, count, values / count]."""
    apart = build.reshape(codes, n, count, values // count)
    return build.multiply(build.reshape(steps, n, count, 1), apart)


def six_bit_scales(build: Builder, packed: Tensor) -> tuple[Tensor, Tensor]:
    """S6: bytes [n, 12] to eight scales and eight mins, [n, 8] each."""
    first, second, last = (build.cut(packed, 1, start, start + 4) for start in (0, 4, 8))
    scales = with_high(build, build.mask(last, 15), build.right(first, 6), 4)
    mins = with_high(build, build.right(last, 4), build.right(second, 6), 4)
    return (
        build.concat([build.mask(first, 63), scales], 1),
        build.concat([build.mask(second, 63), mins], 1),
    )
