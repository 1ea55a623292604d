"""The rules that make the translation lossless, one test each (scheme specification, section 7)."""

import json
import tracemalloc

import numpy as np
import pytest

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import words_of
from ninfer_core.schemes.literal import SPECS
from ninfer_core.schemes.profiles.describe import describe, description
from ninfer_core.schemes.profiles.dispatch import dequantize
from ninfer_core.schemes.profiles.encode import encode
from ninfer_core.schemes.profiles.model import (
    BlockField,
    BlockLayout,
    Cast,
    Codebook,
    FloatingPoint,
    Function,
    Linear,
    Log,
    Quantization,
    Rotation,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
)
from ninfer_core.schemes.profiles.model_values import Carrier
from ninfer_core.schemes.profiles.rules import check_words
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import CannotEncode, SchemeRefused
from ninfer_core.schemes.structs.model import Array, Component, Leaf, PackedArray, Reference, Structure
from ninfer_core.schemes.structs.sizes import size_bits, size_bytes

LINEAR = Linear("UINT4", 4, False, ScaleFloat(0.5), 8)


def fields(quantization: Quantization, *shape: int) -> dict[str, object]:
    """The root's fields: payload types, and constants as numbers."""
    declared = translate(quantization, shape)
    type_ = declared.declarations[declared.root].type
    assert isinstance(type_, Structure)
    codes = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "BOOL": "?"}
    return {
        item.name: item.type
        if item.constant is None
        else np.frombuffer(item.constant.data, codes[item.constant.dtype])
        .reshape(item.constant.dims)
        .tolist()
        for item in type_.fields
    }


def dequantized(quantization: Quantization, payload: bytes, *shape: int) -> list[float]:
    """The numbers of a payload by way of the type alone."""
    declared = translate(quantization, shape)
    values = dequantize(declared, np.frombuffer(payload, np.uint8), shape)
    return [float(value) for value in values.ravel()]


def test_nothing_explicit_is_hidden() -> None:
    quantization = Quantization(
        Linear("INT8", 8, True, ScaleVector((0.5, 0.25)), 0, 0),
        "NAMED",
        "FLOAT16",
        "what it is",
        (("key", "value"),),
        Rotation("HADAMARD", (4,)),
        Rotation("PLAIN", (2, 2), (0.0, 1.0, 1.0, 0.0)),
    )
    found = fields(quantization, 2, 4)
    assert list(found) == [
        "values", "storage_type", "bits", "symmetric", "scale", "zero_point", "axis",
        "pre_rotation_type", "pre_rotation_dims", "post_rotation_type", "post_rotation_dims", "post_rotation",
        "data_type",
    ]  # fmt: skip
    declaration = translate(quantization, (2, 4)).declarations[0]
    assert (declaration.name, declaration.doc) == ("NAMED", "what it is")
    assert declaration.metadata == (("key", "value"),)
    assert describe(translate(quantization, (2, 4))) == quantization


def test_parameters_that_a_structure_leaves_out_are_metadata() -> None:
    quantization = SPECS["tq2_0_literal"].quantization((256,), {})
    block = translate(quantization, (256,)).declarations[0]
    (entry,) = block.metadata
    assert entry[0] == "profile:index_bits"
    assert json.loads(entry[1]) == {"dtype": "INT32", "dims": [], "values": [2]}


def test_linear_codes_are_leaves_only_of_their_own_width() -> None:
    assert fields(Quantization(LINEAR), 6)["values"] == Array(Leaf("UINT4"), 6)
    narrow = Quantization(Linear("UINT4", 3, False, ScaleFloat(0.5), 4))
    assert fields(narrow, 6)["values"] == Array(Leaf("UINT8"), 3)  # 18 bits
    payload = bytes(words_of(np.array([0, 1, 2, 3, 4, 7]), 3))
    assert dequantized(narrow, payload, 6) == [-2.0, -1.5, -1.0, -0.5, 0.0, 1.5]


def test_scale_int_keeps_its_member_of_the_oneof() -> None:
    quantization = Quantization(Linear("INT8", 8, True, ScaleInt(-3)))
    declared = translate(quantization, (4,))
    type_ = declared.declarations[0].type
    assert isinstance(type_, Structure)
    scale = next(item.constant for item in type_.fields if item.name == "scale")
    assert scale is not None
    assert (scale.dtype, scale.data) == ("INT32", b"\xfd\xff\xff\xff")
    assert dequantized(quantization, b"\x08\xf8\x01\x80", 4) == [1.0, -1.0, 0.125, -16.0]
    assert describe(declared) == quantization


def test_scale_and_zero_point_are_fields_where_they_vary_by_block() -> None:
    linear = Linear("UINT4", 4, False, ScaleField("FLOAT16"), ZeroField("UINT8"))
    quantization = Quantization(Tiling((4,), (Quantization(linear, "BLOCK"),), field="blocks"))
    declared = translate(quantization, (8,))
    block = declared.declarations[0].type
    assert isinstance(block, Structure)
    assert [item.name for item in block.fields][:3] == ["values", "scale", "zero_point"]
    payload = bytes.fromhex("2143 003c 026587 0040 05")  # scales 1 and 2
    assert dequantized(quantization, payload, 8) == [-1, 0, 1, 2, 0, 2, 4, 6]
    assert describe(declared) == quantization


def test_log_signs_are_absent_without_has_sign() -> None:
    assert "signs" not in fields(Quantization(Log(4, 2.0, -7.0, False)), 8)
    signed = Quantization(Log(4, 2.0, -7.0, True))
    assert fields(signed, 9)["signs"] == Array(Leaf("UINT8"), 2)
    assert dequantized(signed, bytes([0x70, 0xF8, 0b0101]), 4) == [-0.0078125, 1.0, -2.0, 256.0]


def test_codebook_defaults() -> None:
    data = (-1.0, 0.0, 1.0)
    bare = Quantization(Codebook(data, packed_count=5, packed_bytes=1))
    zeros = Quantization(Codebook(data, None, 5, 1, 0, 0, 0, 0))
    # 0 and nothing mean one codebook, an inferred size, one value and base N; no scale is 1 (R2, R8).
    for quantization in (bare, zeros):
        assert dequantized(quantization, bytes([102]), 5) == [-1.0, 0.0, 1.0, -1.0, 0.0]
    assert "num_codebooks" not in fields(bare, 5)
    assert fields(zeros, 5)["num_codebooks"] == 0
    assert describe(translate(zeros, (5,))) == zeros


def test_table_has_codebooks_x_entries_x_vector_numbers() -> None:
    quantization = Quantization(Codebook((0.0,) * 24, num_codebooks=2, vector_size=3, index_bits=2))
    assert np.shape(fields(quantization, 6)["codebooks"]) == (2, 4, 3)


def test_widths_come_from_the_layout_and_repeated_constants_agree() -> None:
    plain = FloatingPoint(1, 3, 2, 3, True, True, packed_count=4, packed_bytes=3)
    found = fields(Quantization(plain), 4)
    assert list(found) == ["packed", "exponent_bias", "has_inf", "has_nan"]
    components = (Component("sign", 1), Component("exponent", 3), Component("mantissa", 2))
    assert found["packed"] == PackedArray(components, 4)
    repeated = Quantization(FloatingPoint(1, 3, 2, 3, True, True, False, 4, 3, repeated=True))
    assert fields(repeated, 4)["packed_bytes"] == 3
    assert describe(translate(repeated, (4,))) == repeated


def test_split_storage_has_one_field_for_each_component() -> None:
    split = FloatingPoint(1, 3, 2, 3, False, False, True, 4, 3)
    found = fields(Quantization(split), 4)
    assert found["sign_exponent"] == PackedArray((Component("sign", 1), Component("exponent", 3)), 4)
    assert found["mantissa"] == Array(Leaf("UINT2"), 4)


def test_a_block_layout_takes_the_place_of_the_payload() -> None:
    layout = BlockLayout(8, 5, (BlockField("VALUES", 0, 4, 8), BlockField("SCALE", 32, 8, 1)))
    plain = Quantization(Function("UINT4", 4, "vendor::Q", "vendor::D"))
    laid = Quantization(Function("UINT4", 4, "vendor::Q", "vendor::D", layout))
    assert fields(plain, 16)["payload"] == Array(Leaf("UINT4"), 16)
    assert fields(laid, 16)["blocks"] == Array(Reference(0), 2)
    assert size_bytes(translate(laid, (16,))) == 2 * layout.bytes_per_block
    metadata = translate(laid, (16,)).declarations[1].metadata
    assert metadata == (("quantize_op", "vendor::Q"), ("dequantize_op", "vendor::D"))
    for quantization in (plain, laid):
        declared = translate(quantization, (16,))
        assert declared.declarations[declared.root].decoder is None
        assert describe(declared) == quantization
    # Where standard operators can say it, the functions stand in the root.
    portable = Quantization(Function("UINT4", 4, "vendor::Q", "vendor::D", decoder=b"d", encoder=b"e"))
    root = translate(portable, (16,)).declarations[0]
    assert (root.decoder, root.encoder) == (b"d", b"e")
    assert describe(translate(portable, (16,))) == portable


def test_a_zero_in_the_tile_shape_is_the_whole_axis() -> None:
    quantization = Quantization(Tiling((0, 2), (Quantization(Cast("FLOAT")),), (0, 1)))
    declared = translate(quantization, (3, 4))
    assert declared.declarations[0].type == Array(Array(Leaf("FLOAT"), 2), 3)
    assert fields(quantization, 3, 4)["tiles"] == Array(Array(Reference(0), 2), 1)
    payload = np.arange(12, dtype=np.float32).reshape(3, 2, 2).transpose(1, 0, 2).tobytes()
    assert dequantized(quantization, payload, 3, 4) == list(range(12))


def test_perm_orders_tiles_and_the_elements_of_a_single_one() -> None:
    matrix = np.arange(24, dtype=np.float32).reshape(4, 6)
    element = (Quantization(Cast("FLOAT")),)
    columns = Quantization(Tiling((0, 0), element, (0, 1), (1, 0)))
    assert dequantized(columns, matrix.T.tobytes(), 4, 6) == list(range(24))
    tiles = Quantization(Tiling((2, 3), element, (0, 1), (1, 0)))
    stored = matrix.reshape(2, 2, 2, 3).transpose(2, 0, 1, 3)  # tile columns outside, rows inside of a tile
    assert dequantized(tiles, stored.tobytes(), 4, 6) == list(range(24))


def test_sizes_that_do_not_divide_are_padded() -> None:
    quantization = Quantization(Tiling((2, 4), (Quantization(Cast("FLOAT")),), (0, 1)))
    values = np.arange(15, dtype=np.float32).reshape(3, 5)
    payload = encode(quantization, values)
    assert payload.size == 4 * 8 * 4
    assert dequantized(quantization, payload.tobytes(), 3, 5) == list(range(15))


def test_tiles_cycle_their_quantizations_as_fields() -> None:
    narrow = Quantization(Linear("UINT2", 2, False, ScaleFloat(1.0)), "NARROW")
    wide = Quantization(Linear("UINT8", 8, False, ScaleFloat(1.0)), "WIDE")
    quantization = Quantization(Tiling((4,), (narrow, wide)))
    declared = translate(quantization, (12,))
    assert list(fields(quantization, 12))[:3] == ["tiles_0", "tiles_1", "tiles_2"]
    assert size_bytes(declared) == 1 + 4 + 1
    assert len(declared.declarations) == 3  # the third tile refers to the first one's declaration
    payload = bytes([0b11100100, 9, 8, 7, 6, 0b00011011])
    assert dequantized(quantization, payload, 12) == [0, 1, 2, 3, 9, 8, 7, 6, 3, 2, 1, 0]
    assert describe(declared) == quantization


def test_padding_takes_the_place_of_offsets_and_of_the_stated_bytes() -> None:
    layout = BlockLayout(4, 4, (BlockField("VALUES", 3, 4, 4), BlockField("SCALE", 24, 8, 1, scalar=True)))
    quantization = Quantization(StructuredBlock(layout))
    declared = translate(quantization, (4,))
    block = declared.declarations[0].type
    assert isinstance(block, Structure)
    assert [item.name for item in block.fields] == ["padding_0", "values", "padding_1", "scale"]
    assert block.fields[0].type == PackedArray((Component("zero", 3),), 1)
    assert size_bits(declared) == 32
    payload = (0x4321 << 3 | 2 << 24).to_bytes(4, "little")
    assert dequantized(quantization, payload, 4) == [2.0, 4.0, 6.0, 8.0]
    assert describe(declared) == quantization
    findings = Findings()
    check_words(quantization, np.frombuffer(b"\xff" * 4, np.uint8), (4,), findings)
    assert [(item.code, item.count) for item in findings.items] == [("scheme.padding_nonzero", 1)] * 2


def test_constants_of_blocks_are_absent_with_their_source() -> None:
    found = fields(SPECS["structured_block_prepacked_interleaved"].quantization((32,), {}), 32)
    assert list(found) == ["blocks", "storage_order", "block_size"]
    scattered = fields(SPECS["stq1_0_catalogue_420"].quantization((256,), {}), 256)
    names = ("scatter_group_size", "scatter_vector_size", "scatter_stride")
    assert [scattered[name] for name in names] == [64, 4, 16]


def test_an_axis_blocks_each_run_along_it() -> None:
    layout = BlockLayout(4, 5, (BlockField("VALUES", 0, 8, 4), BlockField("SCALE", 32, 8, 1)))
    values = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15]], np.float32)
    rows, columns = (Quantization(StructuredBlock(layout, axis=axis)) for axis in (1, 0))
    payload = b"".join(bytes([*map(int, row), 0, 1]) for row in values)
    assert dequantized(rows, payload, 5, 3) == values.ravel().tolist()
    payload = b"".join(
        bytes([*map(int, column[:4]), 1]) + bytes([int(column[4]), 0, 0, 0, 1]) for column in values.T
    )
    assert dequantized(columns, payload, 5, 3) == values.ravel().tolist()


def test_orders_of_storage() -> None:
    interleaved = translate(SPECS["structured_block_prepacked_interleaved"].quantization((64,), {}), (64,))
    sequential = translate(SPECS["structured_block_prepacked_sequential"].quantization((64,), {}), (64,))
    assert len(interleaved.declarations) == 2  # an array of blocks
    assert len(sequential.declarations) == 1  # one array for each field
    assert size_bytes(interleaved) == size_bytes(sequential) == 46


def test_sparse_outliers_replace_and_keep_their_type() -> None:
    base = Quantization(Linear("INT8", 8, True, ScaleFloat(1.0)), "BASE")
    quantization = Quantization(Sparse(base, "FLOAT16", 6.0, 0.01, 2))
    declared = translate(quantization, (4,))
    assert fields(quantization, 4)["values"] == Array(Leaf("FLOAT16"), 2)
    payload = encode(quantization, np.array([1, -9, 3, 7], np.float32))
    assert dequantize(declared, payload, (4,)).tolist() == [1, -9, 3, 7]
    for index, code in ((-1, "scheme.index_out_of_range"), (4, "scheme.index_out_of_range")):
        broken = payload.copy()
        broken[4:12].view("<i8")[0] = index
        with pytest.raises(SchemeRefused) as refused:
            dequantize(declared, broken, (4,))
        assert refused.value.findings.items[0].code == code
    swapped = payload.copy()
    swapped[4:20].view("<i8")[:] = (3, 1)
    findings = Findings()
    check_words(quantization, swapped, (4,), findings)
    assert [item.code for item in findings.items] == ["scheme.outliers_out_of_order"]


def test_counts_that_fill_no_byte_are_padded_by_a_field() -> None:
    quantization = Quantization(Linear("INT4", 4, True, ScaleFloat(1.0)))
    assert fields(quantization, 3)["padding"] == PackedArray((Component("zero", 4),), 1)
    declared = translate(quantization, (3,))
    assert description(declared).shape == (3,)
    assert dequantize(declared, b"\x21\xf3", (3,)).tolist() == [1, 2, 3]


def test_rotations_apply_on_both_sides() -> None:
    # Result = post x decoded x pre (R11); a plain vector before is divided out.
    codes = np.array([[1, 2], [3, 4]], np.int8)
    linear = Linear("INT8", 8, True, ScaleFloat(1.0))
    pre, post = (2.0, 0.0, 1.0, 1.0), (0.0, 1.0, 1.0, 0.0)
    full = Quantization(
        linear, pre_rotation=Rotation("PLAIN", (2, 2), pre), post_rotation=Rotation("PLAIN", (2, 2), post)
    )
    expected = np.array(post).reshape(2, 2) @ codes @ np.array(pre).reshape(2, 2)
    assert dequantized(full, codes.tobytes(), 2, 2) == expected.ravel().tolist()
    smooth = Quantization(linear, pre_rotation=Rotation("PLAIN", (2,), (2.0, 4.0)))
    assert dequantized(smooth, codes.tobytes(), 2, 2) == [0.5, 0.5, 1.5, 1.0]
    hadamard = Quantization(linear, post_rotation=Rotation("HADAMARD", (2, 2)))
    root = float(np.float32(np.sqrt(0.5)))
    made = dequantized(hadamard, codes.tobytes(), 2, 2)
    assert made == [float(np.float32(v * np.float32(root))) for v in (4, 6, -2, -2)]


def test_codes_are_clipped_to_the_range_of_their_leaf() -> None:
    # R5: the seed would clip signed codes to 0 and lose every negative weight.
    values = np.array([-9, -0.75, -0.25, 0.25, 0.75, 9], np.float32)
    signed = Quantization(Linear("INT4", 4, True, ScaleFloat(0.5)))
    assert dequantized(signed, encode(signed, values).tobytes(), 6) == [-4, -1, 0, 0, 1, 3.5]
    unsigned = Quantization(Linear("UINT4", 4, False, ScaleFloat(0.5), 8))
    assert dequantized(unsigned, encode(unsigned, values).tobytes(), 6) == [-4, -1, 0, 0, 1, 3.5]


@pytest.mark.parametrize("carrier", ["components", "bytes"])
def test_small_floats_that_are_no_numbers_are_named_however_they_are_carried(carrier: Carrier) -> None:
    kind = FloatingPoint(1, 3, 2, 3, True, True, packed_count=4, packed_bytes=3, carrier=carrier)
    payload = bytearray(size_bytes(translate(Quantization(kind), (4,))))
    for faults, payload[-1] in ((0, 0), (1, 0xFF)):
        findings = Findings()
        check_words(Quantization(kind), payload, (4,), findings)
        assert [(one.code, one.count) for one in findings] == [("scheme.value_not_finite", 1)] * faults
        assert all(one.where["index"] == 3 for one in findings)


def test_values_and_zero_points_that_are_no_numbers_are_named() -> None:
    stored = Quantization(Linear("UINT8", 8, False, ScaleFloat(1.0), ZeroField("FLOAT16")))
    fields_ = (BlockField("VALUES", 0, 16, 2, "FLOAT16"), BlockField("ZERO_POINT", 32, 16, 1, "FLOAT16"))
    block = Quantization(StructuredBlock(BlockLayout(2, 6, fields_)))
    for quantization, payload, parts in (
        (stored, bytes.fromhex("0102 007e"), ["zero_point"]),
        (block, bytes.fromhex("007e 003c 007c"), ["blocks.values", "blocks.zero_point"]),
    ):
        findings = Findings()
        check_words(quantization, np.frombuffer(payload, np.uint8), (2,), findings)
        assert [(one.code, one.where["part"]) for one in findings] == [
            ("scheme.value_not_finite", part) for part in parts
        ]


def test_bits_behind_codes_wider_than_a_byte_are_padding() -> None:
    findings = Findings()
    wide = Quantization(Linear("UINT16", 12, False, ScaleFloat(1.0)))
    check_words(wide, np.frombuffer(b"\xff\xff", np.uint8), (1,), findings)
    assert [one.code for one in findings] == ["scheme.padding_nonzero"]


def test_a_length_of_zero_takes_no_memory_for_the_others() -> None:
    tiles = Quantization(Tiling((4, 4), (Quantization(LINEAR),), (0, 1)))
    tracemalloc.start()
    assert encode(tiles, np.zeros((4, 0, 1 << 24), np.float32)).size == 0
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_zero_is_the_smallest_magnitude_of_a_logarithm() -> None:
    quantization = Quantization(Log(4, 2.0, -7.0, True))
    values = np.array([0.0, -0.0, -1.0, 1e9, -1e-9], np.float32)
    decoded = dequantized(quantization, encode(quantization, values).tobytes(), 5)
    assert decoded == [2**-7, 2**-7, -1.0, 256.0, -(2**-7)]
    with pytest.raises(CannotEncode):
        encode(Quantization(Log(4, 2.0, -7.0, False)), values)


def test_what_no_rule_fixes_is_not_encoded() -> None:
    values = np.ones(32, np.float32)
    for quantization in (
        Quantization(Function("UINT4", 4, "a", "b")),
        Quantization(Linear("INT4", 4, True, ScaleField("FLOAT16"))),
        Quantization(Linear("INT4", 4, True, ScaleFloat(0.0))),
        Quantization(Codebook((0.0,) * 8, num_codebooks=2, index_bits=2)),
        SPECS["structured_block_prepacked_interleaved"].quantization((32,), {}),
        Quantization(Cast("INT8")),
    ):
        with pytest.raises(CannotEncode):
            encode(quantization, values)
    with pytest.raises(CannotEncode):
        encode(Quantization(LINEAR), values * np.float32(np.nan))
