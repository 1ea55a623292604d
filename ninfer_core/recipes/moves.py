"""Operations that move words and change none; those that move whole rows take quantized matrices too."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Fields
from ninfer_core.layouts.base import U64_MAX
from ninfer_core.recipes.bundles import BundleTree, Tree
from ninfer_core.recipes.nodes import ConcatRows, GatherRows, Node, Reshape, RowBlocks, Rows, Transpose
from ninfer_core.recipes.reading import Reader, misfit, plain_operand
from ninfer_core.sources.json_text import listed

MAX_IDS: Final = 1 << 24  # row numbers are held in memory, eight bytes each


def read_rows(reader: Reader, fields: Fields) -> Tree | None:
    """`rows`: a slice along the leading axis."""
    begin, end, of = fields.integer("begin"), fields.integer("end"), reader.operand(fields)
    if begin is None or end is None or of is None:
        return None
    limit = of.shape[0] if of.shape else 0
    if not begin < end <= limit:
        message = f"rows [{begin}, {end}) of shape {list(of.shape)}."
        expected = f"a filled range within [0, {limit})"
        misfit(fields, "operation_shape", message, expected, f"[{begin}, {end})")
        return None
    return _moved(of, lambda node: Rows(begin, node, (end - begin, *node.shape[1:]), node.dtype))


def read_row_blocks(reader: Reader, fields: Fields) -> Tree | None:
    """`row_blocks`: the same rows of every block of the leading axis."""
    blocks, stride = fields.integer("blocks", 1), fields.integer("stride", 1)
    begin, end, of = fields.integer("begin"), fields.integer("end"), reader.operand(fields)
    if blocks is None or stride is None or begin is None or end is None or of is None:
        return None
    rows = of.shape[0] if of.shape else 0
    if blocks * stride != rows:
        message = f"{blocks} blocks of {stride} rows of shape {list(of.shape)}."
        misfit(fields, "operation_shape", message, f"{rows} rows in all", f"{blocks * stride} rows")
        return None
    if not begin < end <= stride:
        message = f"rows [{begin}, {end}) of blocks of {stride}."
        expected = f"a filled range within [0, {stride})"
        misfit(fields, "operation_shape", message, expected, f"[{begin}, {end})")
        return None
    count = end - begin
    return _moved(
        of,
        lambda node: RowBlocks(stride, begin, count, node, (blocks * count, *node.shape[1:]), node.dtype),
    )


def read_gather_rows(reader: Reader, fields: Fields) -> Tree | None:
    """`gather_rows`: rows by the numbers that another rule makes."""
    ids, of = fields.text("ids"), reader.operand(fields)
    if ids is None or of is None:
        return None
    lengths = reader.known.vectors
    count = lengths.get(ids)
    if ids not in lengths and not reader.known.incomplete:
        shown = strict_json.show(ids)
        message = f"no rule makes a vector of I32 called {shown} without gathering itself."
        known = listed(lengths)
        reader.faults.add("ids_undefined", fields.path("ids"), message, known, shown, ids=ids)
    if count is None:
        return None
    if not of.shape:
        misfit(fields, "operation_shape", "a scalar has no rows.", "at least one axis", "[]")
        return None
    if count > MAX_IDS or count * prod(of.shape[1:]) > U64_MAX:
        message = f"{count:,} rows of shape {list(of.shape)}."
        expected = f"at most {MAX_IDS:,} rows and below 2^64 elements"
        misfit(fields, "operation_shape", message, expected, f"{count:,} rows")
        return None
    return _moved(of, lambda node: GatherRows(ids, node, (count, *node.shape[1:]), node.dtype))


def _moved(of: Tree, move: Callable[[Node], Node]) -> Tree:
    return of.moved(move) if isinstance(of, BundleTree) else move(of)


def read_concat_rows(reader: Reader, fields: Fields) -> Tree | None:
    """`concat_rows`: operands one after the other along the leading axis."""
    values = fields.array("of")
    if values is None:
        return None
    if not values:
        fields.wrong_value("of", "at least one operand")
        return None
    parts = [reader.read(value, (*fields.path("of"), index)) for index, value in enumerate(values)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    first = known[0]
    if any(not part.shape or part.shape[1:] != first.shape[1:] for part in known):
        shapes = strict_json.show([list(part.shape) for part in known])
        message = "operands differ beyond their first axis."
        misfit(fields, "operation_shape", message, "equal trailing sizes", shapes)
        return None
    kinds = tuple(dict.fromkeys(map(_kind, known)))
    if len(kinds) > 1:
        message = "operands differ in dtype."
        misfit(fields, "operation_dtype", message, "one dtype, or matrices of one kind", ", ".join(kinds))
        return None
    shape = (sum(part.shape[0] for part in known), *first.shape[1:])
    if prod(shape) > U64_MAX:
        misfit(fields, "operation_shape", "too many elements together.", "below 2^64 elements", list(shape))
        return None
    bundles = [part for part in known if isinstance(part, BundleTree)]
    if bundles:
        sources = tuple(dict.fromkeys(part for bundle in bundles for part in bundle.parts))
        codes, scales = (bundle.codes for bundle in bundles), (bundle.scales for bundle in bundles)
        return BundleTree(bundles[0].kind, (shape[0], shape[1]), _joined(codes), _joined(scales), sources)
    return _joined(part for part in known if not isinstance(part, BundleTree))


def _kind(tree: Tree) -> str:
    return f"{tree.kind} matrix" if isinstance(tree, BundleTree) else tree.dtype


def _joined(nodes: Iterable[Node]) -> ConcatRows:
    parts = tuple(nodes)
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    return ConcatRows(parts, shape, parts[0].dtype)


def read_reshape(reader: Reader, fields: Fields) -> Node | None:
    """`reshape`: the same words in C order under another shape."""
    shape, of = reader.shape(fields), plain_operand(reader, fields)
    if shape is None or of is None:
        return None
    if prod(shape) != prod(of.shape):
        message = f"shape {list(of.shape)} does not become {list(shape)}."
        misfit(fields, "operation_shape", message, f"{prod(of.shape)} elements", f"{prod(shape)} elements")
        return None
    return Reshape(of, shape, of.dtype)


def read_index(reader: Reader, fields: Fields) -> Node | None:
    """`index`: one place of one axis, which is dropped."""
    axis, at, of = fields.integer("axis"), fields.integer("at"), plain_operand(reader, fields)
    if axis is None or at is None or of is None:
        return None
    rank = len(of.shape)
    if axis >= rank or at >= of.shape[axis]:
        message = f"index {at} of axis {axis} of shape {list(of.shape)}."
        expected = "a place within the shape" if rank else "no axis"
        misfit(fields, "operation_shape", message, expected, f"axis {axis}, index {at}")
        return None
    rest = (*of.shape[:axis], *of.shape[axis + 1 :])
    if of.shape[axis] == 1:
        return Reshape(of, rest, of.dtype)
    # The axis to the front, one row of it, without it: nothing that other moves could not say.
    axes = (axis, *(other for other in range(rank) if other != axis))
    front = Transpose(axes, of, (of.shape[axis], *rest), of.dtype) if axis else of
    return Reshape(Rows(at, front, (1, *rest), of.dtype), rest, of.dtype)


def read_transpose(reader: Reader, fields: Fields) -> Node | None:
    """`transpose`: a permutation of axes, then C order."""
    axes, of = fields.integers("axes"), plain_operand(reader, fields)
    if axes is None or of is None:
        return None
    if sorted(axes) != list(range(len(of.shape))):
        message = f"axes {strict_json.show(list(axes))} of shape {list(of.shape)}."
        expected = f"each of 0 to {len(of.shape) - 1} once" if of.shape else "no axis"
        misfit(fields, "operation_shape", message, expected, strict_json.show(list(axes)))
        return None
    return Transpose(axes, of, tuple(of.shape[axis] for axis in axes), of.dtype)
