"""What makes a block's layout legal, and a structured block or a custom function around it (seed: BlockLayoutProto)."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.faults import Faults
from ninfer_core.schemes.profiles.model import (
    ORDERS,
    ROLES,
    BlockField,
    BlockLayout,
    Function,
    StructuredBlock,
)
from ninfer_core.schemes.profiles.numbers import MAX_COUNT, finite, is_integer, whole
from ninfer_core.schemes.structs.leaves import LEAVES


def check_layout(layout: BlockLayout, sequential: bool, faults: Faults) -> bool:
    """Whether the fields of a block are legal: apart from one another, and as many bytes as stated."""
    before = len(faults.findings.items)
    if not whole(layout.block_size) or not whole(layout.bytes_per_block) or not layout.block_size:
        faults.add("count_not_concrete", "block_size", "no size of a block", "counts", layout.block_size)
        return False
    for field in layout.fields:
        _check_field(field, faults)
    names = [field.name for field in layout.fields]
    roles = [field.role for field in layout.fields]
    if len(set(names)) != len(names) or len(set(roles)) != len(roles) or not names:
        faults.add("field_illegal", "fields", "a role or a name stands twice, or none", "each once", names)
    if len(faults.findings.items) > before:
        return False
    end = 0
    for field in layout.fields:
        if sequential and field.bit_offset:
            faults.add("field_illegal", field.name, "a region begins with its record", 0, field.bit_offset)
        elif not sequential and field.bit_offset < end:
            message = f"begins inside the field before, which ends at bit {end}"
            faults.add("fields_overlap", field.name, message, f">= {end}", field.bit_offset)
        end = field.bits + (end if sequential else field.bit_offset)
    bits = 8 * layout.bytes_per_block
    if end > bits or (sequential and end != bits):
        message = "the fields take another number of bytes"
        faults.add("bytes_per_block", "bytes_per_block", message, f"{end / 8:g}", layout.bytes_per_block)
    return len(faults.findings.items) == before


def _check_field(field: BlockField, faults: Faults) -> None:
    numbers = (field.bit_offset, field.bit_width, field.count)
    if not all(whole(number) and number < MAX_COUNT for number in numbers):
        faults.add("count_not_concrete", field.name, "no concrete numbers", "counts", numbers)
        return
    if field.role not in ROLES:
        faults.add("field_illegal", field.name, "no such role", ", ".join(ROLES), field.role)
    if not 1 <= field.bit_width <= 64 or not field.count or (field.scalar and field.count != 1):
        faults.add("field_illegal", field.name, "no field", "1 to 64 bits, one element or more", numbers)
    elif field.data_type is not None:
        if field.data_type not in LEAVES or LEAVES[field.data_type].bits != field.bit_width:
            faults.add(
                "field_illegal", field.name, "another width", f"{field.bit_width} bits", field.data_type
            )
    elif field.carrier:
        if field.carrier not in LEAVES or LEAVES[field.carrier].kind != "unsigned":
            faults.add("field_illegal", field.name, "no carrier", "an unsigned scalar", field.carrier)
        elif field.bit_width > 16 or field.bits % LEAVES[field.carrier].bits or field.scalar:
            message = f"{field.count} x {field.bit_width} bits do not fill {field.carrier}"
            faults.add("field_illegal", field.name, message, "whole words, up to 16 bits", field.bits)


def check_function(kind: Function, shape: Shape, faults: Faults) -> None:
    """A storage type, a width, two names of operators, and a legal layout where one is stated."""
    if kind.storage_type not in LEAVES:
        faults.add("storage_type", "storage_type", "no scalar", ", ".join(LEAVES.names), kind.storage_type)
    if not 1 <= kind.bits <= 64:
        faults.add("bits_out_of_range", "bits", "no width of a code", "1 to 64", kind.bits)
    for part in ("quantize_op", "dequantize_op"):
        if not getattr(kind, part):
            faults.add("operator_missing", part, "no name of an operator", "domain::Name", "nothing")
    if kind.block_layout is not None:
        check_layout(kind.block_layout, False, faults)


def check_structured_block(kind: StructuredBlock, shape: Shape, faults: Faults) -> None:
    """A legal layout, and a way from its fields to as many values as a block has."""
    layout = kind.layout
    if kind.storage_order not in (None, *ORDERS):
        faults.add("field_illegal", "storage_order", "no such order", ", ".join(ORDERS), kind.storage_order)
    if kind.axis is not None and not 0 <= kind.axis < len(shape):
        faults.add("axis_out_of_range", "axis", "none of the tensor", f"0 to {len(shape) - 1}", kind.axis)
    if kind.bare and kind.storage_order == "SEQUENTIAL":
        faults.add("field_illegal", "bare", "regions need a root", "INTERLEAVED", kind.storage_order)
    if not check_layout(layout, kind.storage_order == "SEQUENTIAL", faults):
        return
    for role in ("SCALE", "ZERO_POINT", "BIAS"):
        field = layout.of(role)
        if field is not None and field.count != 1:
            faults.add("field_illegal", field.name, "one for each block", 1, field.count)
    values = _values_from_codebook(kind, faults) if kind.codebook_data else _values_direct(kind, faults)
    if values is None:
        return
    if values != layout.block_size:
        faults.add(
            "block_size", "block_size", "the fields give another number of values", values, layout.block_size
        )
    scatter = kind.scatter
    if scatter is not None:
        numbers = (scatter.group_size, scatter.vector_size, scatter.stride)
        good = all(whole(number) and number for number in numbers)
        if (
            not good
            or scatter.group_size != scatter.vector_size * scatter.stride
            or values % scatter.group_size
        ):
            message = "does not place every value of a block once"
            faults.add("scatter_illegal", "scatter", message, "group = vector x stride", numbers)
        elif kind.codebook_data and scatter.vector_size != kind.codebook_vector_size:
            message = "lanes of another number than an entry's values"
            faults.add("scatter_illegal", "scatter", message, kind.codebook_vector_size, scatter.vector_size)


def _values_direct(kind: StructuredBlock, faults: Faults) -> int | None:
    field = kind.layout.of("VALUES")
    if field is None or kind.index_formula or kind.codebook_vector_size:
        message = "values come from VALUES or from a codebook with an index formula"
        faults.add("field_illegal", "codebook_data", message, "one of them", "neither or both")
        return None
    return field.count


def _values_from_codebook(kind: StructuredBlock, faults: Faults) -> int | None:
    before = len(faults.findings.items)
    size = kind.codebook_vector_size
    if not size:
        faults.add("codebook_vector_size", "codebook_vector_size", "entries of no values", ">= 1", size)
    elif len(kind.codebook_data) % size:
        message = f"not made of whole entries of {size}"
        faults.add(
            "codebook_size", "codebook_data", message, f"a multiple of {size}", len(kind.codebook_data)
        )
    if not all(map(finite, kind.codebook_data)):
        faults.add("codebook_size", "codebook_data", "an entry is not finite", "finite numbers", "others")
    if not kind.index_formula:
        message = "a codebook needs one"
        faults.add("index_formula_missing", "index_formula", message, "at least one term", "none")
    if len(kind.index_formula) > len(ROLES):
        message = "more terms than a block has fields"
        faults.add("field_illegal", "index_formula", message, f"up to {len(ROLES)}", len(kind.index_formula))
        return None
    counts, low, high = set(), 0, 0
    for term in kind.index_formula:
        field = kind.layout.of(term.field)
        if field is None:
            faults.add("index_field_absent", str(term.field), "no field of the block", "a field", "none")
            continue
        counts.add(field.count)
        if field.data_type is not None and LEAVES[field.data_type].kind == "float":
            message = "an index is made of integers"
            faults.add("index_not_integer", field.name, message, "an integer type", field.data_type)
            continue
        if not is_integer(term.multiplier) or abs(term.multiplier) >= MAX_COUNT:
            faults.add("count_not_concrete", "index_formula", "no number", "an integer", term.multiplier)
            continue
        signed = field.data_type is not None and LEAVES[field.data_type].kind == "signed"
        least = -(1 << field.bit_width - 1) if signed else 0
        most = (1 << field.bit_width - signed) - 1
        ends = (least * term.multiplier, most * term.multiplier)
        low, high = low + min(ends), high + max(ends)
    if len(counts) > 1:
        message = "fields of one index have different counts"
        faults.add("index_field_counts", "index_formula", message, "one count", sorted(counts))
    if len(faults.findings.items) > before:
        return None
    entries = len(kind.codebook_data) // size
    if high < 0 or low >= entries or max(abs(low), abs(high)) >= MAX_COUNT:
        message = "no index can be an entry's"
        faults.add("index_out_of_range", "index_formula", message, f"0 to {entries - 1}", f"{low} to {high}")
        return None
    return math.prod(counts) * size
