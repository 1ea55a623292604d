"""Small floats from their parts by R9, and their scale."""

import math
from typing import Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import FloatingPoint
from ninfer_core.schemes.profiles.ops import Ops, T
from ninfer_core.schemes.profiles.pieces import stream_bytes
from ninfer_core.schemes.profiles.place import Place

_INFINITY: Final = math.inf


def floating_point(ops: Ops[T], kind: FloatingPoint, shape: Shape, place: Place) -> T:
    """FLOAT [*batch, *shape]."""
    values = math.prod(shape)
    if kind.carrier == "native":
        held = ops.number(place.leaf("values"))
    elif kind.carrier == "bytes":
        words = stream_bytes(values, kind.bits)
        codes = ops.codes(ops.stored(place.leaf("values")), kind.bits, values, place.batch, words)
        held = _from_code(ops, kind, codes, place)
    else:
        at = place
        if kind.unit is not None:
            units = -(-values // kind.packed_count)
            at = place.below(kind.unit.field, units)
        held = _from_components(ops, kind, at)
        if kind.unit is not None and units * kind.packed_count != values:
            flat = ops.reshape(held, *place.batch, units * kind.packed_count)
            held = ops.cut(flat, len(place.batch), 0, values)
        if kind.parameter is not None and len(shape) == 1:
            return held  # of as many values as the count says; a function need not know the number
    made = ops.reshape(held, *place.batch, *shape)
    if kind.scale is None:
        return made
    return ops.multiply(made, ops.reshape(ops.number(place.leaf("scale")), *place.batch, *(1,) * len(shape)))


def _from_code(ops: Ops[T], kind: FloatingPoint, codes: T, place: Place) -> T:
    mantissa = ops.field(codes, 0, kind.mantissa_bits) if kind.mantissa_bits else None
    exponent = ops.field(codes, kind.mantissa_bits, kind.exponent_bits)
    sign = ops.field(codes, kind.bits - 1, 1) if kind.sign_bits else None
    return _value(ops, kind, sign, exponent, mantissa, place)


def _from_components(ops: Ops[T], kind: FloatingPoint, place: Place) -> T:
    if kind.bare:
        at = {name: place.component(name) for name in ("sign", "exponent", "mantissa")}
    elif not kind.split_storage:
        at = {name: f"{place.leaf('packed')}.{name}" for name in ("sign", "exponent", "mantissa")}
    else:
        first = place.leaf("sign_exponent" if kind.sign_bits else "exponent")
        apart = place.leaf("mantissa")
        leaf = kind.mantissa_bits in (2, 4, 8)
        at = {"sign": f"{first}.sign", "exponent": f"{first}.exponent"}
        at["mantissa"] = apart if leaf else f"{apart}.mantissa"
    sign = ops.stored(at["sign"]) if kind.sign_bits else None
    mantissa = ops.stored(at["mantissa"]) if kind.mantissa_bits else None
    return _value(ops, kind, sign, ops.stored(at["exponent"]), mantissa, place)


def _value(
    ops: Ops[T], kind: FloatingPoint, sign: T | None, exponent: T, mantissa: T | None, place: Place
) -> T:
    """(-1)^s (mantissa / 2^m) 2^(1 - bias) below exponent 1, else (-1)^s (1 + mantissa / 2^m) 2^(exponent - bias).

    Every step is exact: the checks hold all values inside binary32.
    """
    one, zero = ops.constant(1.0, "FLOAT"), ops.constant(0.0, "FLOAT")
    power = ops.cast(exponent, "FLOAT")
    low = ops.equal(power, zero)
    path = place.constant("exponent_bias")
    stated = ops.stored(path) if ops.has(path) else ops.constant(kind.exponent_bias, "INT32")
    by = ops.subtract(ops.where(low, one, power), ops.cast(stated, "FLOAT"))
    whole = ops.where(low, zero, one)
    counted = None if mantissa is None else ops.cast(mantissa, "FLOAT")
    if counted is not None:
        part = ops.multiply(counted, ops.constant(2.0**-kind.mantissa_bits, "FLOAT"))
        whole = ops.add(part, whole)
    made = ops.multiply(whole, ops.power(ops.constant(2.0, "FLOAT"), by))
    if kind.has_inf or kind.has_nan:
        made = _with_specials(ops, kind, made, power, counted)
    if sign is None:
        return made
    twice = ops.multiply(ops.cast(sign, "FLOAT"), ops.constant(2.0, "FLOAT"))
    return ops.multiply(made, ops.subtract(one, twice))


def _with_specials(ops: Ops[T], kind: FloatingPoint, made: T, exponent: T, mantissa: T | None) -> T:
    """Infinity and NaN at the exponent of all ones; NaN alone has the mantissa of all ones."""
    nan = ops.constant(math.nan, "FLOAT")
    special = nan
    if mantissa is not None:
        infinite = kind.has_inf
        chosen = ops.constant(0.0 if infinite else float((1 << kind.mantissa_bits) - 1), "FLOAT")
        at = ops.equal(mantissa, chosen)
        infinity = ops.constant(_INFINITY, "FLOAT")
        special = ops.where(at, infinity, nan) if infinite else ops.where(at, nan, made)
    top = ops.equal(exponent, ops.constant(float((1 << kind.exponent_bits) - 1), "FLOAT"))
    return ops.where(top, special, made)
