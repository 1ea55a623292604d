"""The leaves of a value in canonical order: depth first as declared, with the place of every element (section 5)."""

from dataclasses import dataclass

from ninfer_core.schemes.structs.layout import Laid, Parts, Repeated, Scalar, Shared
from ninfer_core.schemes.structs.leaves import LEAVES, LeafType
from ninfer_core.schemes.structs.model import Constant


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """One leaf: a tensor over the payload, or a constant.

    `element` is what the tensor holds; of a packed component that is the smallest unsigned type, and `bits` its own
    width. Element `[i, j]` of the payload begins at bit `offset_bits + i * strides_bits[0] + j * strides_bits[1]`.
    """

    path: str  # field names joined with dots; a component adds a dot and its name, also to an empty path
    element: LeafType
    bits: int
    shape: tuple[int, ...]
    offset_bits: int = 0
    strides_bits: tuple[int, ...] = ()
    packed: bool = False
    constant: Constant | None = None

    @property
    def label(self) -> str:
        """The element type for people; a component by its width: `UINT(3)`."""
        return f"UINT({self.bits})" if self.packed else self.element.name


def unroll(laid: Laid) -> tuple[LeafPlan, ...]:
    """The leaves of a root whose number was limited before; each step here leads to one, so the work follows them."""
    plans: list[LeafPlan] = []
    _unroll(laid, _Place("", 0, (), ()), True, set(), plans)
    return tuple(plans)


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, name: str, offset: int, scalar: bool) -> "_Place":
        path = f"{self.path}.{name}" if scalar or self.path else name
        return _Place(path, self.offset + offset, self.shape, self.strides)


def _unroll(laid: Laid, place: _Place, fresh: bool, seen: set[int], plans: list[LeafPlan]) -> None:
    # `fresh`: the first way into this declaration, where its constants have their one position (section 11).
    match laid.body:
        case Scalar(element=element, packed=packed):
            plans.append(
                LeafPlan(place.path, element, laid.bits, place.shape, place.offset, place.strides, packed)
            )
        case Repeated(count=count, of=of):
            inner = _Place(place.path, place.offset, (*place.shape, count), (*place.strides, of.bits))
            _unroll(of, inner, fresh, seen, plans)
        case Parts(parts=parts, filled=filled):
            for part in parts if fresh else filled:
                if part.constant is not None:
                    plans.append(_constant(place.at(part.name, 0, False).path, part.constant))
                elif part.laid is not None:
                    component = isinstance(part.laid.body, Scalar) and part.laid.body.packed
                    _unroll(part.laid, place.at(part.name, part.offset, component), fresh, seen, plans)
        case Shared(declaration=declaration, laid=inner_laid):
            first = declaration not in seen
            seen.add(declaration)
            _unroll(inner_laid, place, first, seen, plans)


def _constant(path: str, constant: Constant) -> LeafPlan:
    element = LEAVES[constant.dtype]
    return LeafPlan(path, element, element.bits, constant.dims, constant=constant)
