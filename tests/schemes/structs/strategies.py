"""Random struct types with payloads, and types that one change has broken."""

from dataclasses import replace

from hypothesis import strategies as st

from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Constant,
    Count,
    Declaration,
    Declared,
    Dim,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
)
from tests.schemes.structs.oracle import bits_needed

MOST_BITS = 20_000  # of a drawn payload: the oracle reads every one


def _counts(parameters: int) -> st.SearchStrategy[Count]:
    constant = st.integers(0, 4)
    return constant | st.integers(0, parameters - 1).map(Dim) if parameters else constant


@st.composite
def constants(draw: st.DrawFn) -> Constant:
    """A legal constant of any leaf type."""
    dtype = draw(st.sampled_from(LEAVES.names))
    dims = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    count = 1
    for dim in dims:
        count *= dim
    size = -(-count * LEAVES[dtype].bits // 8)
    return Constant(dtype, dims, draw(st.binary(min_size=size, max_size=size)))


def _packed(parameters: int) -> st.SearchStrategy[PackedArray]:
    widths = st.lists(st.integers(1, 64), min_size=1, max_size=4)
    parts = widths.map(lambda bits: tuple(Component(f"c{i}", width) for i, width in enumerate(bits)))
    return st.builds(PackedArray, parts, _counts(parameters))


def _structures(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Structure]:
    contents = st.one_of(inner, inner, constants())

    def build(parts: list[Type | Constant]) -> Structure:
        return Structure(
            tuple(
                Field(f"f{i}", constant=part) if isinstance(part, Constant) else Field(f"f{i}", part)
                for i, part in enumerate(parts)
            )
        )

    return st.lists(contents, max_size=4).map(build)


def _types(targets: list[int], parameters: int) -> st.SearchStrategy[Type]:
    leaf = st.sampled_from(LEAVES.names).map(Leaf)
    base: st.SearchStrategy[Type] = leaf | _packed(parameters)
    if targets:
        base |= st.sampled_from(targets).map(Reference)
    return st.recursive(
        base, lambda inner: st.builds(Array, inner, _counts(parameters)) | _structures(inner), max_leaves=6
    )


def _roots(targets: list[int], parameters: int) -> st.SearchStrategy[Type]:
    inner = _types(targets, parameters)
    return st.builds(Array, inner, _counts(parameters)) | _structures(inner) | _packed(parameters)


def _used(type_: Type | None) -> set[int]:
    match type_:
        case Array(element=element, count=count):
            return _used(element) | ({count.index} if isinstance(count, Dim) else set())
        case PackedArray(count=Dim(index=index)):
            return {index}
        case Structure(fields=fields):
            return set().union(*(_used(part.type) for part in fields))
    return set()


@st.composite
def declared(draw: st.DrawFn) -> Declared:
    """A sound root among declarations that it may refer to, with its counts; its bits fill whole bytes."""
    known: list[Declaration] = []
    for _ in range(draw(st.integers(0, 3))):
        known.append(Declaration(draw(_roots(list(range(len(known))), 0))))
    parameters = draw(st.integers(0, 2))
    root = draw(_roots(list(range(len(known))), parameters))
    counts = tuple(draw(st.integers(0, 4)) for _ in range(parameters))
    # A parameter that nothing uses gets a count of its own.
    unused = [at for at in range(parameters) if at not in _used(root)]
    more = [Field(f"u{at}", Array(Leaf("UINT8"), Dim(at))) for at in unused]
    if more:
        root = Structure((Field("body", root), *more))
    names = tuple(f"n{at}" for at in range(parameters))
    found = Declared((*known, Declaration(root, dims_param=names)), len(known), counts)
    over = bits_needed(found) % 8
    if over:
        pad = Field("pad", PackedArray((Component("zero", 8 - over),), 1))
        padded = replace(found.declarations[-1], type=Structure((Field("all", root), pad)))
        found = replace(found, declarations=(*known, padded))
    return found


@st.composite
def with_payload(draw: st.DrawFn) -> tuple[Declared, bytes]:
    """A sound type and bytes of its size."""
    found = draw(declared().filter(lambda one: bits_needed(one) <= MOST_BITS))
    size = bits_needed(found) // 8
    seed = draw(st.binary(min_size=32, max_size=32))
    # Repeating few drawn bytes keeps drawing fast; 31 of them shift against every power of two.
    return found, (seed[:31] * (size // 31 + 1))[:size]
