"""What makes a floating-point profile legal: widths, bias, special values, and what carries a value (R9)."""

import math
from typing import Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.faults import Faults
from ninfer_core.schemes.profiles.model import FloatingPoint
from ninfer_core.schemes.structs.leaves import LEAVES

# Sign, exponent and mantissa bits, bias, infinity, NaN of the scalars whose values follow R9.
NATIVE: Final[dict[str, tuple[int, int, int, int, bool, bool]]] = {
    "FLOAT4E2M1": (1, 2, 1, 1, False, False),
    "FLOAT6E2M3": (1, 2, 3, 1, False, False),
    "FLOAT6E3M2": (1, 3, 2, 3, False, False),
    "FLOAT8E4M3FN": (1, 4, 3, 7, False, True),
    "FLOAT8E5M2": (1, 5, 2, 15, True, True),
    "FLOAT16": (1, 5, 10, 15, True, True),
    "BFLOAT16": (1, 8, 7, 127, True, True),
    "FLOAT": (1, 8, 23, 127, True, True),
}


def check_floating_point(kind: FloatingPoint, shape: Shape, faults: Faults) -> None:
    """Every fault of a floating-point profile."""
    values = math.prod(shape)
    widths = f"{kind.sign_bits}+{kind.exponent_bits}+{kind.mantissa_bits}"
    narrow = kind.sign_bits <= 1 and 1 <= kind.exponent_bits <= 8 and kind.mantissa_bits <= 23
    if not narrow:
        expected = "up to 1 + 8 + 23 bits, one exponent bit at least"
        faults.add("float_layout", "exponent_bits", "no small float", expected, widths)
        return
    if kind.has_inf and not (kind.has_nan and kind.mantissa_bits):
        message = "infinity without NaN, or without a mantissa bit to tell them apart"
        faults.add("float_layout", "has_inf", message, "has_nan", kind.has_nan)
    smallest = 1 - kind.exponent_bias - kind.mantissa_bits
    # The exponent of all ones has numbers too where NaN is the mantissa of all ones alone (R9).
    reserved = kind.has_inf or (kind.has_nan and not kind.mantissa_bits)
    largest = (1 << kind.exponent_bits) - 1 - reserved - kind.exponent_bias
    if smallest < -149 or largest > 127:
        message = "values beyond binary32"
        faults.add("float_layout", "exponent_bias", message, "-149 to 127", f"{smallest} to {largest}")
    if kind.packed_count * kind.bits != 8 * kind.packed_bytes:
        message = f"{kind.packed_count} values of {kind.bits} bits"
        faults.add(
            "packing_disagrees", "packed_bytes", message, kind.packed_count * kind.bits / 8, kind.packed_bytes
        )
    if kind.scale is not None and (kind.scale.type not in LEAVES or LEAVES[kind.scale.type].kind != "float"):
        faults.add("scale_illegal", "scale", "no scale", "a floating-point scalar", kind.scale.type)
    _check_carrier(kind, values, faults)


def _check_carrier(kind: FloatingPoint, values: int, faults: Faults) -> None:
    found = (
        kind.sign_bits, kind.exponent_bits, kind.mantissa_bits, kind.exponent_bias, kind.has_inf, kind.has_nan,
    )  # fmt: skip
    if kind.carrier == "native":
        if kind.leaf not in NATIVE or NATIVE[kind.leaf] != found:
            message = "no scalar has these widths, this bias and these special values"
            faults.add("float_layout", "leaf", message, NATIVE.get(kind.leaf or "", "none"), found)
    elif kind.leaf is not None:
        faults.add("float_layout", "leaf", "stated for another carrier", None, kind.leaf)
    if kind.carrier == "bytes" and kind.bits > 16:
        faults.add("float_layout", "carrier", "too wide for a stream of codes", "up to 16 bits", kind.bits)
    apart = kind.carrier != "components"
    if kind.split_storage and (apart or kind.bare or not kind.mantissa_bits):
        message = "components that lie apart need a field each"
        faults.add("float_layout", "split_storage", message, "components", kind.carrier)
    if (kind.bare or kind.unit) and (apart or (kind.bare and kind.unit) or kind.scale is not None):
        message = "only packed components stand bare or in units, and without a scale"
        faults.add("float_layout", "unit", message, "components", kind.carrier)
    if kind.parameter is not None and not kind.bare:
        faults.add("float_layout", "parameter", "only a bare array has one", None, kind.parameter)
    if not apart and not kind.bare and kind.unit is None and kind.packed_count != values:
        message = "without units, the packed array holds the whole tensor"
        faults.add("packing_disagrees", "packed_count", message, values, kind.packed_count)
