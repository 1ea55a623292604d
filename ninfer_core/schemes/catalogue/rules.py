"""The rules R1 to R17 of the scheme specification, which close what the seed leaves open, in a sentence or two each."""

from collections.abc import Mapping
from typing import Final

RULES: Final[Mapping[str, str]] = {
    "R1": "Bits fill a byte from the lowest up. Codes narrower than their carrier are a stream of bits, low first, that "
    "starts afresh with each block.",
    "R2": "`index_bits` 0 means base N: `packed_bytes` bytes are one little-endian integer of `packed_count` digits, the "
    "first value in the lowest digit. What exceeds N^count - 1 is illegal.",
    "R3": "Digits and bits that hold no value are written as zero and ignored when read. The shape of the result says how "
    "many values are real; the payload exceeds it by less than a unit of packing.",
    "R4": "The type of the leaf decides the sign: INT4 holds -8 to 7, UINT4 0 to 15, whatever zero points stand beside it.",
    "R5": "Codes are clipped to the range of the leaf, and rounded half to even unless a tool does otherwise.",
    "R6": "A scale for each channel is a vector, as a constant or as a field; a scalar applies to all channels.",
    "R7": "A constant takes no payload, so a constant scale is the same for every block. A block with a scale of its own "
    "carries it as a field.",
    "R8": "A codebook without a scale has scale 1.",
    "R9": "Small floats have sign, exponent and mantissa from the top bit down, subnormals at exponent 0, and infinity and "
    "NaN at the highest exponent only where the type has them.",
    "R10": "`perm` orders the grid of tiles, and with a single tile the elements; a tile of size 0 is the whole axis; sizes "
    "that do not divide are padded.",
    "R11": "HADAMARD is Sylvester's matrix over sqrt(n), n a power of two. The result is post x decoded x pre; a "
    "pre-rotation of one dimension, a vector of smoothing factors, is divided out.",
    "R12": "Sparse outliers stand at strictly increasing flat indices and replace the base value.",
    "R13": "A log code has its sign in a plane of its own, 1 for negative; zero becomes the smallest magnitude, positive.",
    "R14": "Values are decoded in binary32 and cast last to the declared output type.",
    "R15": "`scale_int` e multiplies by 2^e.",
    "R16": "Of twin scales the product is formed first, then the code multiplied, then an offset subtracted.",
    "R17": "A list of elements shorter than that of the tiles is repeated.",
}
