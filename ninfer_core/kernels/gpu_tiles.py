"""Parts of kernels for CUDA devices: words, arithmetic that is rounded once, and octets in and out of the planes.

An *octet* is eight lanes that start at a multiple of eight: what one thread works on. A line has sixteen of them, an octet
never spans two groups, and its codes are whole bytes of every plane. Functions here use nothing of `cuda` but the decorator,
so that the simulator runs them as plain Python from any module. Indices are int64 and turned into uint64 at the subscript:
an index that may be negative costs the device a comparison with the size of the array each time.
"""

from collections.abc import Callable
from typing import Any, Final

import numba
import numpy as np
from numba import cuda

from ninfer_core.kernels import scalar
from ninfer_core.kernels.tiles import KIND_BF16, KIND_F16, KIND_F32, LINE

config: Any = numba.config
SIMULATED: Final = bool(config.ENABLE_CUDASIM)
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small tensors leave most of a device idle, and nobody can help that

OCTET: Final = 8  # lanes
LINE_OCTETS: Final = LINE // OCTET
THREADS: Final = 32 if SIMULATED else 256  # of a block: whole lines, so that no group spans two blocks

Array = Any
Scalar = Any  # a number of the type that its maker says, on the device and in numpy
Function = Callable[..., Any]


def device(function: Function) -> Function:
    """Compile as a part of the kernels that call it."""
    if SIMULATED:
        return function
    jit: Function = cuda.jit
    part: Function = jit(function, device=True, forceinline=True)
    return part


def kernel(function: Function) -> Function:
    """Compile for the device of the first launch, once per combination of array types and kept for this process.

    No fast-math. Without link-time optimisation, what `compile_ptx` shows is what runs.
    """
    jit: Function = cuda.jit
    whole: Function = jit(function) if SIMULATED else jit(function, lto=False)
    return whole


# Products and sums that are rounded by themselves: written with operators, the compiler fuses a product and a sum.
if SIMULATED:

    def multiply32(a: Scalar, b: Scalar) -> Scalar:
        """a * b in binary32."""
        with np.errstate(all="ignore"):
            return np.float32(a) * np.float32(b)

    def divide32(a: Scalar, b: Scalar) -> Scalar:
        """a / b in binary32."""
        with np.errstate(all="ignore"):
            return np.float32(a) / np.float32(b)

    def nearest_integer(value: Scalar) -> Scalar:
        """The nearest integer of a binary32 value, ties to even."""
        return int(np.rint(value))

    def multiply64(a: Scalar, b: Scalar) -> Scalar:
        """a * b in binary64."""
        with np.errstate(all="ignore"):
            return np.float64(a) * np.float64(b)

    def add64(a: Scalar, b: Scalar) -> Scalar:
        """a + b in binary64."""
        with np.errstate(all="ignore"):
            return np.float64(a) + np.float64(b)

else:
    from numba.cuda import libdevice

    multiply32, divide32, nearest_integer = libdevice.fmul_rn, libdevice.fdiv_rn, libdevice.float2int_rn
    multiply64, add64 = libdevice.dmul_rn, libdevice.dadd_rn

binary32_of_binary16 = device(scalar.binary32_of_binary16)
binary16_of_binary32 = device(scalar.binary16_of_binary32)
bf16_of_binary32 = device(scalar.bf16_of_binary32)
code_of_normalized = device(scalar.code_of_normalized)
product_of_row = device(scalar.product_of_row)


@device
def value32(word: Scalar) -> Scalar:
    """The value of a binary32 word."""
    return np.uint32(word).view(np.float32)


@device
def word32(value: Scalar) -> Scalar:
    """The word of a binary32 value."""
    return np.float32(value).view(np.uint32)


@device
def source_word(kind: int, word: Scalar) -> Scalar:
    """The binary32 word of a source word of at most 32 bits."""
    if kind == KIND_BF16:
        return np.uint32(np.uint32(word) << np.uint32(16))
    if kind == KIND_F16:
        return np.uint32(binary32_of_binary16(np.int64(word)))
    return np.uint32(word)


@device
def load_lanes(kind: int, source: Array, start: int, lanes: int, words: Array) -> None:
    """Binary32 words of `lanes` source words, at most eight, from `start` on; zeros up to eight."""
    for i in range(OCTET):
        words[i] = np.uint32(0)
        if i < lanes:
            words[i] = source_word(kind, source[np.uint64(start + i)])


@device
def load_octet(kind: int, wide: Array, octet: int, words: Array) -> None:
    """Binary32 words of a whole octet from the same source in words of 64 bits."""
    if kind != KIND_F32:
        for half in range(2):
            four = wide[np.uint64(octet * 2 + half)]
            for i in range(4):
                word = (four >> np.uint64(16 * i)) & np.uint64(0xFFFF)
                words[4 * half + i] = source_word(kind, word)
    else:
        for quarter in range(4):
            two = wide[np.uint64(octet * 4 + quarter)]
            words[2 * quarter] = np.uint32(two & np.uint64(0xFFFFFFFF))
            words[2 * quarter + 1] = np.uint32(two >> np.uint64(32))


@device
def code_word(bits: int, base: Array, high: Array, octet: int, i: int) -> Scalar:
    """The unsigned code word of lane `i` of an octet; `base` in words of 32 bits, `high` in bytes."""
    if bits == 8:
        return (np.int64(base[np.uint64(octet * 2 + (i >> 2))]) >> (8 * (i & 3))) & 0xFF
    word = (np.int64(base[np.uint64(octet)]) >> (4 * i)) & 15
    if bits == 5:
        word |= ((np.int64(high[np.uint64(octet)]) >> i) & 1) << 4
    elif bits == 6:
        word |= ((np.int64(high[np.uint64(octet * 2 + (i >> 2))]) >> (2 * (i & 3))) & 3) << 4
    return word


@device
def code_at(bits: int, base: Array, high: Array, lane: int) -> Scalar:
    """The signed code of one physical lane."""
    sign = 1 << (bits - 1)
    return (code_word(bits, base, high, lane >> 3, lane & 7) ^ sign) - sign


@device
def unpack_octet(bits: int, base: Array, high: Array, octet: int, codes: Array) -> None:
    """The eight signed codes of an octet."""
    sign = 1 << (bits - 1)
    for i in range(OCTET):
        codes[i] = (code_word(bits, base, high, octet, i) ^ sign) - sign


@device
def pack_octet(bits: int, codes: Array, octet: int, base: Array, high: Array) -> None:
    """Write eight signed codes; no other octet has a part of the bytes."""
    if bits == 8:
        for half in range(2):
            word = np.int64(0)
            for i in range(4):
                word |= (np.int64(codes[4 * half + i]) & 0xFF) << (8 * i)
            base[np.uint64(octet * 2 + half)] = np.uint32(word)
        return
    low, upper = np.int64(0), np.int64(0)
    extra = bits - 4
    for i in range(OCTET):
        code = np.int64(codes[i])
        low |= (code & 15) << (4 * i)
        upper |= ((code >> 4) & ((1 << extra) - 1)) << (extra * i)
    base[np.uint64(octet)] = np.uint32(low)
    if bits == 5:
        high[np.uint64(octet)] = np.uint8(upper)
    elif bits == 6:
        high[np.uint64(octet * 2)] = np.uint8(upper & 0xFF)
        high[np.uint64(octet * 2 + 1)] = np.uint8(upper >> 8)


@device
def scale_value(word: Scalar) -> Scalar:
    """The value of a binary16 scale word: a normal binary32 number, zero, or what an invalid word widens to."""
    return value32(binary32_of_binary16(np.int64(word)))
