"""Leaf rules on single words, written once for every processor.

Each function is plain Python on integers (or integer-like scalars), calls nothing, and has no branch that a
vector unit could not turn into a selection; `kernels` compile them as they stand. Words are unsigned and held
in a type with room to spare (64-bit integers in Python and in the compiled twins).
"""


def binary32_of_bf16(word: int) -> int:
    """The binary32 word of a BF16 word."""
    return word << 16


def binary32_of_binary16(word: int) -> int:
    """The binary32 word of a binary16 word; subnormals become normal, a NaN payload moves to the top."""
    sign = (word & 0x8000) << 16
    magnitude = word & 0x7FFF
    significand, exponent = magnitude, 113  # an integer times 2**-24: bring its leading bit to bit 10
    if significand < 1 << 3:
        significand, exponent = significand << 8, exponent - 8
    if significand < 1 << 7:
        significand, exponent = significand << 4, exponent - 4
    if significand < 1 << 9:
        significand, exponent = significand << 2, exponent - 2
    if significand < 1 << 10:
        significand, exponent = significand << 1, exponent - 1
    wide = (exponent << 23) + ((significand & 0x3FF) << 13)
    if magnitude >= 0x400:
        wide = (magnitude << 13) + (112 << 23)
    if magnitude >= 0x7C00:
        wide = (magnitude << 13) | 0x7F800000
    if magnitude == 0:
        wide = 0
    return sign | wide


def binary32_of_binary64(word: int) -> int:
    """The binary32 word nearest to a binary64 word, ties to even; infinity beyond, NaN becomes quiet."""
    sign = (word >> 32) & 0x80000000
    magnitude = word & 0x7FFFFFFFFFFFFFFF
    exponent = (magnitude >> 52) - 896
    fraction = magnitude & 0xFFFFFFFFFFFFF
    # In the subnormal range the significand shifts right by its distance to exponent 1, sticky bit kept.
    significand = fraction | 0x10000000000000
    drop = 30 - exponent
    if drop < 29:
        drop = 29
    if drop > 54:
        drop = 54
    if exponent <= -896:
        significand = 0
    rest = significand & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    narrow = significand >> drop
    if rest > half or (rest == half and narrow & 1 == 1):
        narrow += 1
    if exponent > 0:
        narrow += (exponent - 1) << 23
    if exponent > 254 or narrow > 0x7F800000:
        narrow = 0x7F800000
    if magnitude > 0x7FF0000000000000:
        narrow = 0x7FC00000 | ((fraction >> 29) & 0x3FFFFF)
    return sign | narrow


def binary16_of_binary32(word: int) -> int:
    """The binary16 word nearest to a positive finite binary32 word, ties to even; infinity beyond."""
    narrow = min((word + 0xFFF + ((word >> 13) & 1) - (112 << 23)) >> 13, 0x7C00)
    drop = 126 - (word >> 23)
    if drop < 14:
        drop = 14
    if drop > 25:
        drop = 25  # the significand has 24 bits: what is left is zero
    significand = (word & 0x7FFFFF) | 0x800000
    subnormal = (significand + (1 << (drop - 1)) - 1 + ((significand >> drop) & 1)) >> drop
    return subnormal if word < 113 << 23 else narrow


def bf16_of_binary32(word: int) -> int:
    """The BF16 word nearest to a binary32 word, ties to even; NaN stays NaN and becomes quiet."""
    rounded = (word + 0x7FFF + ((word >> 16) & 1)) >> 16
    return (word >> 16) | 0x40 if (word & 0x7FFFFFFF) > 0x7F800000 else rounded


def product_of_row(code: int, scale: int) -> int:
    """E4M3FN code word times BF16 row scale word as a binary32 word, one rounding (tensor-formats 3.4).

    Exact integers: 4 bits times 8 bits. NaN codes and invalid scales give the quiet NaN.
    """
    sign = (code & 0x80) << 24
    code &= 0x7F
    e, m = code >> 3, code & 7
    if e > 0:
        m += 8
    else:
        e = 1
    f, n = (scale >> 7) & 0xFF, scale & 0x7F
    if f > 0:
        n += 128
    else:
        f = 1
    product = m * n  # at most 15 * 255, times 2**(e - 10 + f - 134)
    # Bring the leading bit to bit 23; then the biased exponent below belongs to it.
    exponent = e + f - 144 + 150
    wide = product << 12
    exponent -= 12
    if wide < 1 << 16:
        wide, exponent = wide << 8, exponent - 8
    if wide < 1 << 20:
        wide, exponent = wide << 4, exponent - 4
    if wide < 1 << 22:
        wide, exponent = wide << 2, exponent - 2
    if wide < 1 << 23:
        wide, exponent = wide << 1, exponent - 1
    word = ((exponent - 1) << 23) + wide
    if exponent < 1:
        drop = 1 - exponent
        if drop > 25:
            drop = 25
        word = (wide + (1 << (drop - 1)) - 1 + ((wide >> drop) & 1)) >> drop
    if exponent > 254:
        word = 0x7F800000
    if product == 0:
        word = 0
    if code == 0x7F or scale > 0x7F7F:
        word = 0x7FC00000
    return sign | word


def code_of_normalized(rounded: int, qmin: int, qmax: int) -> int:
    """The legal code nearest to a rounded quotient: the clamp after rounding (tensor-formats section 7)."""
    return min(max(rounded, qmin), qmax)


def row_scale32_of(amax: int) -> int:
    """The binary32 word of amax / 448, one rounding, for a positive finite binary32 word."""
    exponent, significand = amax >> 23, amax & 0x7FFFFF
    if exponent > 0:
        significand += 0x800000
    else:
        exponent = 1
    # 448 is 7 * 2**6. The quotient has its leading bit at 52 or 53; bit 0 stands for all that was cut off.
    wide = (significand << 32) // 7
    if (significand << 32) % 7 != 0:
        wide |= 1
    exponent -= 8
    if wide < 1 << 53:
        wide, exponent = wide << 1, exponent - 1
    drop = 30
    if exponent < 1:
        drop = 31 - exponent
    word = (wide + (1 << (drop - 1)) - 1 + ((wide >> drop) & 1)) >> drop
    if exponent > 1:
        word += (exponent - 1) << 23
    return word


def reciprocal_of_row_scale(scale: int) -> int:
    """The binary32 word of 1 / scale, one rounding, for a BF16 word from 0x0021 to 0x7e80: a normal number."""
    exponent, significand = scale >> 7, scale & 0x7F
    if exponent > 0:
        significand += 128
    else:
        exponent = 1
    if significand < 64:
        significand, exponent = significand << 1, exponent - 1
    if significand < 128:
        significand, exponent = significand << 1, exponent - 1
    wide = (1 << 40) // significand  # 2**32 to 2**33, the latter exact
    if (1 << 40) % significand != 0:
        wide |= 1
    return ((252 - exponent) << 23) + ((wide + 255 + ((wide >> 9) & 1)) >> 9)


def product32(magnitude: int, factor: int) -> int:
    """The binary32 word of a product, one rounding: a finite magnitude word times a positive normal word."""
    exponent, significand = magnitude >> 23, magnitude & 0x7FFFFF
    if exponent > 0:
        significand += 0x800000
    else:
        exponent = 1
    if significand < 1 << 8:
        significand, exponent = significand << 16, exponent - 16
    if significand < 1 << 16:
        significand, exponent = significand << 8, exponent - 8
    if significand < 1 << 20:
        significand, exponent = significand << 4, exponent - 4
    if significand < 1 << 22:
        significand, exponent = significand << 2, exponent - 2
    if significand < 1 << 23:
        significand, exponent = significand << 1, exponent - 1
    wide = significand * ((factor & 0x7FFFFF) + 0x800000)
    exponent += (factor >> 23) - 126
    if wide < 1 << 47:
        wide, exponent = wide << 1, exponent - 1
    drop = 24
    if exponent < 1:
        drop = 25 - exponent
    if drop > 49:
        drop = 49
    word = (wide + (1 << (drop - 1)) - 1 + ((wide >> drop) & 1)) >> drop
    if exponent > 1:
        word += (exponent - 1) << 23
    if exponent > 254:
        word = 0x7F800000
    if magnitude == 0:
        word = 0
    return word


def e4m3fn_of_binary32(magnitude: int) -> int:
    """The E4M3FN word nearest to a binary32 magnitude word of at most 448, ties to even."""
    narrow = ((magnitude + 0x7FFFF + ((magnitude >> 20) & 1)) >> 20) - (120 << 3)
    drop = 141 - (magnitude >> 23)
    if drop < 21:
        drop = 21
    if drop > 25:
        drop = 25  # the significand has 24 bits: what is left is zero
    significand = (magnitude & 0x7FFFFF) | 0x800000
    subnormal = (significand + (1 << (drop - 1)) - 1 + ((significand >> drop) & 1)) >> drop
    return subnormal if magnitude < 121 << 23 else narrow
