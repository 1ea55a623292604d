"""Floating-point profiles out of declarations: components, leaves or bytes, together or in units."""

import math
from dataclasses import replace
from typing import Any

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.check_floats import NATIVE
from ninfer_core.schemes.profiles.level import Level, level_of, peeled
from ninfer_core.schemes.profiles.model import FloatingPoint, Kind, ScaleField, Unit
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Declared, Dim, Leaf, PackedArray, Type

_WIDTHS = ("sign", "exponent", "mantissa")


def floating_point(level: Level, unit: tuple[str, int, int] | None, declared: Declared) -> tuple[Kind, Shape]:
    """The kind and a shape. Raises: SchemeRefused."""
    if unit is not None:
        field, index, count = unit
        level.part(field)
        inner = level_of(declared.declarations[index])
        kind, shape = floating_point(inner, None, declared)
        if inner.payload or inner.read.constants or inner.metadata or not isinstance(kind, FloatingPoint):
            raise level.unknown("the unit holds something else as well")
        return _copy(kind, unit=Unit(inner.name, field)), (count * math.prod(shape),)
    if level.bare:
        return _bare(level, declared)
    if "values" in level.payload:
        return _carried(level)
    widths, count, split = _components(level)
    return _whole(level, widths, count, split)


def _copy(kind: FloatingPoint, **changes: Any) -> FloatingPoint:
    return replace(kind, **changes)


def _bare(level: Level, declared: Declared) -> tuple[Kind, Shape]:
    type_ = level.declaration.type
    if not isinstance(type_, PackedArray):
        raise level.unknown("no packed array")
    widths, parameter = _named(level, type_), None
    count = type_.count
    if isinstance(count, Dim):
        parameter = level.declaration.dims_param[count.index]
        count = declared.dims[count.index]
    kind, shape = _whole(level, widths, count, False)
    return _copy(kind, bare=True, parameter=parameter), shape


def _whole(level: Level, widths: dict[str, int], count: int, split: bool) -> tuple[FloatingPoint, Shape]:
    """Components of `count` values, with what constants say of them."""
    repeated = level.has("sign_bits")
    bits = sum(widths.values())
    kind = _rules(level, widths, count, -(-count * bits // 8), "components", split, repeated)
    scale = ScaleField(level.leaf("scale")[0]) if "scale" in level.payload else None
    return _copy(kind, scale=scale), (count,)


def _rules(
    level: Level,
    widths: dict[str, int],
    count: int,
    size: int,
    carrier: str,
    split: bool,
    repeated: bool,
) -> FloatingPoint:
    found: dict[str, object] = {f"{name}_bits": widths.get(name, 0) for name in _WIDTHS}
    found |= {"packed_count": count, "packed_bytes": size, "split_storage": split}
    if repeated:
        for name, value in found.items():
            stated = level.need(name, "BOOL" if name == "split_storage" else "INT32")
            if carrier != "components" and name in ("packed_count", "packed_bytes"):
                found[name] = stated
            elif stated != value:
                raise level.differs(name, "the layout says otherwise", value, stated)
    return FloatingPoint(
        exponent_bias=level.need("exponent_bias", "INT32"),
        has_inf=level.need("has_inf", "BOOL"),
        has_nan=level.need("has_nan", "BOOL"),
        carrier=carrier,  # type: ignore[arg-type]
        repeated=repeated and carrier == "components",
        **found,  # type: ignore[arg-type]
    )


def _carried(level: Level) -> tuple[Kind, Shape]:
    """Values that are leaves of their type, or a stream of codes in bytes; the widths are parameters."""
    leaf, counts = level.leaf("values")
    stated = {name: level.read.constants.get(f"{name}_bits") for name in _WIDTHS}
    if any(held is None or held.dtype != "INT32" or held.dims != () for held in stated.values()):
        raise level.unknown("the widths of a value are not said")
    widths = {name: held.values[0] for name, held in stated.items() if held is not None}
    native = leaf in NATIVE
    if native and tuple(widths.values()) != NATIVE[leaf][:3]:
        raise level.differs("sign_bits", f"{leaf} has others", NATIVE[leaf][:3], tuple(widths.values()))
    if not native and leaf != "UINT8":
        raise level.unknown(f"{leaf} carries no small floats")
    scale = ScaleField(level.leaf("scale")[0]) if "scale" in level.payload else None
    kind = _rules(level, widths, 0, 0, "native" if native else "bytes", False, True)
    bits = sum(widths.values())
    if not 1 <= bits <= 32 or any(width < 0 for width in widths.values()):
        raise level.differs("sign_bits", "no widths of a value", "1 to 32 bits", widths)
    values: Shape = counts if native else (8 * math.prod(counts) // bits,)
    return _copy(kind, leaf=leaf if native else None, scale=scale), values


def _named(level: Level, type_: Type) -> dict[str, int]:
    """The widths of packed components, which stand in their order: sign, exponent, mantissa."""
    if not isinstance(type_, PackedArray):
        raise level.unknown("components are a packed array")
    widths = {part.name: part.bits for part in type_.components}
    if [name for name in _WIDTHS if name in widths] != [part.name for part in type_.components]:
        raise level.unknown("components are sign, exponent, mantissa, in this order")
    return widths


def _components(level: Level) -> tuple[dict[str, int], int, bool]:
    """Widths by name, the count of values, and whether the mantissa lies apart."""
    if "packed" in level.payload:
        type_ = level.part("packed")
        widths = _named(level, type_)
        return widths, _count(level, type_), False
    name = "sign_exponent" if "sign_exponent" in level.payload else "exponent"
    first, second = level.part(name), level.part("mantissa")
    widths = _named(level, first)
    element, counts = peeled(second)
    if isinstance(element, Leaf) and len(counts) == 1 and LEAVES[element.name].kind == "unsigned":
        widths["mantissa"], count = LEAVES[element.name].bits, counts[0]
    else:
        widths |= _named(level, second)
        count = _count(level, second)
    if count != _count(level, first):
        raise level.differs("mantissa", "not one for each value", _count(level, first), count)
    return widths, count, True


def _count(level: Level, type_: Type) -> int:
    if not isinstance(type_, PackedArray) or isinstance(type_.count, Dim):
        raise level.unknown("the count of packed components is not constant")
    return type_.count
