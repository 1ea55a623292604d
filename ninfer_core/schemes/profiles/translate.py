"""Profiles into struct types: one declaration for each level, every parameter in a place of its own (section 7)."""

import math
from dataclasses import dataclass, field, replace

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.checks import check
from ninfer_core.schemes.profiles.faults import refusal
from ninfer_core.schemes.profiles.kinds import built, tile_parameters
from ninfer_core.schemes.profiles.kinds_blocks import unit_of
from ninfer_core.schemes.profiles.model import (
    FloatingPoint,
    Function,
    Quantization,
    Sparse,
    StructuredBlock,
    Tiling,
)
from ninfer_core.schemes.profiles.parameters import Parameter
from ninfer_core.schemes.profiles.pieces import (
    Built,
    block_fields,
    block_parameters,
    padding,
    shared_parameters,
    structure,
)
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.structs.model import Array, Declaration, Declared, PackedArray, Structure, Type
from ninfer_core.schemes.structs.sizes import size_bits


def translate(quantization: Quantization, logical: Shape) -> Declared:
    """The struct type of a tensor of shape `logical`; its declarations come innermost first, the root last.

    Raises: SchemeRefused, with every `profile.*` finding.
    """
    check(quantization, logical).settle()
    model = _Model()
    root = _declare(quantization, logical, None, model)
    return Declared(_aligned(model.declarations, root), root, model.dims)


@dataclass(slots=True)
class _Model:
    declarations: list[Declaration] = field(default_factory=list)
    dims: tuple[int, ...] = ()

    def add(self, declaration: Declaration) -> int:
        """The index of a declaration; an equal one is not declared twice."""
        for index, known in enumerate(self.declarations):
            if known == declaration:
                return index
            if known.name == declaration.name:
                message = "two different declarations have this name"
                raise refusal(declaration.name, "name_taken", "name", message, "different names")
        self.declarations.append(declaration)
        return len(self.declarations) - 1


def _declare(quantization: Quantization, shape: Shape, tile: Shape | None, model: _Model) -> int:
    """The index of the declaration of one level; `tile` is its shape inside of a tiling."""
    kind = quantization.kind
    inner: tuple[int, ...] = ()
    match kind:
        case Tiling(elem_quant=elements, stacked=False, shape_in_tile=in_tile):
            extent = cut(kind, shape).tile
            inner = tuple(_declare(element, extent, extent, model) for element in elements)
            if in_tile:
                inner = tuple(_with_shape(index, kind, model) for index in inner)
        case Sparse(base=base):
            inner = (_declare(base, shape, None, model),)
        case FloatingPoint(unit=unit) if unit is not None:
            inner = (model.add(Declaration(structure(*unit_of(kind)), unit.name)),)
        case StructuredBlock(storage_order=order) if order != "SEQUENTIAL":
            inner = (model.add(_block(kind)),)
        case Function(block_layout=layout) if layout is not None:
            inner = (model.add(_block(kind)),)
    made = built(kind, shape, tile, inner)
    if made.dims:
        model.dims = made.dims
    return model.add(_declaration(quantization, made))


def _declaration(quantization: Quantization, made: Built) -> Declaration:
    parameters = [*made.parameters, *shared_parameters(quantization)]
    stated = [item for item in parameters if made.bare is None and item.name not in quantization.unstated]
    kept = [item.entry for item in parameters if item not in stated]
    type_: Type = structure(made.fields, stated) if made.bare is None else made.bare
    metadata = (*made.metadata, *kept, *quantization.metadata)
    return Declaration(
        type_,
        quantization.name,
        quantization.doc,
        made.dims_param,
        tuple(metadata),
        made.decoder,
        made.encoder,
    )


def _block(kind: StructuredBlock | Function) -> Declaration:
    """The declaration of one block."""
    layout = kind.layout if isinstance(kind, StructuredBlock) else kind.block_layout
    if layout is None:
        raise ValueError("a function without a layout has no block")
    parameters: list[Parameter] = block_parameters(layout, kind.described)
    stated, kept = (parameters, []) if kind.described else ([], parameters)
    return Declaration(
        structure(block_fields(layout), stated),
        kind.block_name,
        metadata=tuple(item.entry for item in kept),
    )


def _with_shape(index: int, kind: Tiling, model: _Model) -> int:
    """The tile's declaration with the shape of the tile in it."""
    declaration = model.declarations[index]
    if not isinstance(declaration.type, Structure):
        message = "a tile that is a bare array has no place for its shape"
        raise refusal(declaration.name, "elements_illegal", "shape_in_tile", message)
    type_ = Structure((*declaration.type.fields, *(item.field for item in tile_parameters(kind))))
    model.declarations[index] = Declaration(
        type_, declaration.name, declaration.doc, metadata=declaration.metadata
    )
    return index


def _aligned(declarations: list[Declaration], root: int) -> tuple[Declaration, ...]:
    """With the root padded to whole bytes (R3): by a field, or in a bare array by as many elements as it takes."""
    declared = Declared(tuple(declarations), root)
    declaration = declarations[root]
    type_ = declaration.type
    if declaration.dims_param or type_ is None:
        return declared.declarations
    spare = -size_bits(declared) % 8
    if not spare:
        return declared.declarations
    if isinstance(type_, Structure):
        held = [item for item in type_.fields if item.constant is None]
        rest = [item for item in type_.fields if item.constant is not None]
        fitting: Type = Structure((*held, padding(spare), *rest))
    elif isinstance(type_, Array | PackedArray) and isinstance(type_.count, int) and type_.count:
        width = size_bits(declared) // type_.count
        whole = 8 // math.gcd(8, width)
        count = -(-type_.count // whole) * whole
        fitting = (
            Array(type_.element, count) if isinstance(type_, Array) else PackedArray(type_.components, count)
        )
    else:
        return declared.declarations
    last = replace(declaration, type=fitting)
    return (*declarations[:root], last, *declarations[root + 1 :])
