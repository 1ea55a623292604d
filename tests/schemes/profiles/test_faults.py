"""A code for each way in which a profile, or a struct type read as one, contradicts itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ninfer_core.findings.profiles import PROFILES
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.literal import SPECS
from ninfer_core.schemes.profiles.describe import describe
from ninfer_core.schemes.profiles.model import (
    BlockField,
    Cast,
    Codebook,
    FieldWeight,
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
    Scatter,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
)
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import SchemeRefused
from ninfer_core.schemes.structs.model import Declaration, Declared, Field, Structure

LINEAR = Linear("INT4", 4, True, ScaleFloat(0.5))
E3M2 = FloatingPoint(1, 3, 2, 3, False, False, packed_count=4, packed_bytes=3)
STQ = SPECS["stq1_0_catalogue_420"].quantization((256,), {}).kind
assert isinstance(STQ, StructuredBlock)
PREPACKED = SPECS["structured_block_prepacked_interleaved"].quantization((32,), {}).kind
assert isinstance(PREPACKED, StructuredBlock)
CODE, SIGN, SCALE = STQ.layout.fields
NAN = float("nan")


def layout(*fields: BlockField, **changes: Any) -> StructuredBlock:
    """STQ1_0 with other fields or another layout."""
    assert isinstance(STQ, StructuredBlock)
    return replace(STQ, layout=replace(STQ.layout, fields=fields or STQ.layout.fields, **changes))


FAULTS: tuple[tuple[str, Any, Shape], ...] = (
    ("count_not_concrete", replace(LINEAR, bits="N"), (8,)),
    ("count_not_concrete", Tiling(("K",), (Quantization(LINEAR),)), (8,)),  # type: ignore[arg-type]
    ("count_not_concrete", LINEAR, ("N",)),  # type: ignore[arg-type]
    ("count_not_concrete", layout(block_size="N"), (256,)),
    ("storage_type", replace(LINEAR, storage_type="STRING"), (8,)),
    ("storage_type", replace(LINEAR, leaf="INT8"), (8,)),
    ("storage_type", Cast("COMPLEX64"), (8,)),
    ("bits_out_of_range", replace(LINEAR, bits=5), (8,)),
    ("bits_out_of_range", replace(LINEAR, bits=0), (8,)),
    ("bits_out_of_range", Log(17, 2.0, 0.0, False), (8,)),
    ("scale_illegal", replace(LINEAR, scale=ScaleFloat(NAN)), (8,)),
    ("scale_illegal", replace(LINEAR, scale=ScaleFloat(1e39)), (8,)),
    ("scale_illegal", replace(LINEAR, scale=ScaleInt(128)), (8,)),
    ("scale_illegal", replace(LINEAR, scale=ScaleVector((1.0,) * 3), axis=0), (4, 2)),
    ("scale_illegal", replace(LINEAR, scale=ScaleField("INT8")), (8,)),
    ("zero_point_symmetric", replace(LINEAR, zero_point=8), (8,)),
    ("zero_point_symmetric", replace(LINEAR, zero_point=ZeroField("UINT8")), (8,)),
    ("storage_type", replace(LINEAR, symmetric=False, zero_point=ZeroField("STRING")), (8,)),
    ("zero_point_out_of_range", replace(LINEAR, symmetric=False, zero_point=(1 << 24) + 1), (8,)),
    ("zero_point_out_of_range", replace(LINEAR, symmetric=False, zero_point=(1, 2, 3), axis=0), (4, 2)),
    ("axis_out_of_range", replace(LINEAR, axis=1), (8,)),
    ("axis_out_of_range", replace(PREPACKED, axis=1), (32,)),
    ("codebook_size", Codebook((0.0,) * 5, num_codebooks=2, index_bits=2), (8,)),
    ("codebook_size", Codebook((0.0, NAN), index_bits=1), (8,)),
    ("vector_size", Codebook((0.0,) * 6, vector_size=3, index_bits=1), (8,)),
    ("index_packing", Codebook((0.0, 1.0)), (8,)),
    ("index_packing", Codebook((0.0,) * 5, index_bits=2), (8,)),
    ("index_packing", Codebook((0.0,) * 4, packed_count=3, packed_bytes=1, index_bits=2), (8,)),
    ("codebook_size", Codebook((0.0,) * 512, num_codebooks=512, codebook_size=1, index_bits=1), (8,)),
    ("index_packing", Codebook((0.0, 1.0), packed_count=8, packed_bytes=1 << 30), (8,)),
    ("field_illegal", replace(STQ, index_formula=(FieldWeight("CODE", 1),) * 9), (256,)),
    ("base_n_capacity", Codebook((0.0,) * 3, packed_count=6, packed_bytes=1), (8,)),
    ("float_layout", replace(E3M2, exponent_bits=9), (4,)),
    ("float_layout", replace(E3M2, has_inf=True), (4,)),
    ("float_layout", replace(E3M2, exponent_bias=200), (4,)),
    ("float_layout", FloatingPoint(1, 8, 7, 127, False, True, packed_count=4, packed_bytes=8), (4,)),
    ("float_layout", replace(E3M2, carrier="native", leaf="FLOAT6E2M3"), (4,)),
    ("packing_disagrees", replace(E3M2, packed_bytes=4), (4,)),
    ("packing_disagrees", E3M2, (8,)),
    ("outliers_illegal", Sparse(Quantization(LINEAR), "FLOAT16", 6.0, 0.1, 9), (8,)),
    ("outliers_illegal", Sparse(Quantization(LINEAR), "INT8", 6.0, 0.1, 1), (8,)),
    ("log_illegal", Log(4, 1.0, 0.0, False), (8,)),
    ("log_illegal", Log(4, 2.0, NAN, False), (8,)),
    ("operator_missing", Function("UINT4", 4, "", "vendor::D"), (8,)),
    ("tile_shape", Tiling((2, 2), (Quantization(LINEAR),)), (8,)),
    ("axes_invalid", Tiling((2, 2), (Quantization(LINEAR),), (0, 0)), (4, 4)),
    ("axes_invalid", Tiling((2, 2), (Quantization(LINEAR),), (0, 2)), (4, 4)),
    ("perm_invalid", Tiling((2, 2), (Quantization(LINEAR),), (0, 1), (1, 1)), (4, 4)),
    ("elements_illegal", Tiling((4,), ()), (8,)),
    ("elements_illegal", Tiling((4,), (Quantization(LINEAR), Quantization(Cast("FLOAT")))), (4,)),
    ("elements_illegal", Tiling((4,), (Quantization(Cast("FLOAT")),), stacked=True), (4,)),
    ("elements_illegal", Tiling((1,), (Quantization(LINEAR), Quantization(Cast("FLOAT")))), (1 << 40,)),
    ("elements_illegal", LINEAR, (1,) * 40),
    ("name_taken", Tiling((4,), (Quantization(LINEAR, "TILED"),)), (8,)),
    ("fields_overlap", layout(CODE, replace(SIGN, bit_offset=255), SCALE), (256,)),
    ("field_illegal", layout(CODE, CODE, SCALE), (256,)),
    ("field_illegal", layout(CODE, SIGN, replace(SCALE, data_type="FLOAT")), (256,)),
    ("bytes_per_block", layout(bytes_per_block=41), (256,)),
    ("block_size", layout(block_size=255), (256,)),
    ("index_formula_missing", replace(STQ, index_formula=()), (256,)),
    ("codebook_vector_size", replace(STQ, codebook_vector_size=0), (256,)),
    ("index_field_absent", replace(STQ, index_formula=(FieldWeight("MASK", 1),)), (256,)),
    ("index_field_counts", replace(STQ, index_formula=(FieldWeight("CODE", 1), FieldWeight("SCALE", 1))), (256,)),
    ("index_not_integer", replace(STQ, index_formula=(FieldWeight("SCALE", 1),)), (256,)),
    ("index_out_of_range", replace(STQ, index_formula=(FieldWeight("CODE", -1 << 30),), codebook_data=(0.0,) * 4), (256,)),
    ("scatter_illegal", replace(STQ, scatter=Scatter(64, 4, 15)), (256,)),
)  # fmt: skip

AROUND: tuple[tuple[str, Quantization, Shape], ...] = (
    ("rotation_illegal", Quantization(LINEAR, pre_rotation=Rotation("HADAMARD", (12,))), (2, 12)),
    ("rotation_illegal", Quantization(LINEAR, pre_rotation=Rotation("HADAMARD", (8,))), (2, 12)),
    ("rotation_illegal", Quantization(LINEAR, post_rotation=Rotation("HADAMARD", (8, 8))), (8,)),
    ("rotation_illegal", Quantization(LINEAR, pre_rotation=Rotation("PLAIN", (12,), (1.0,))), (2, 12)),
    ("rotation_illegal", Quantization(LINEAR, pre_rotation=Rotation("PLAIN", (2,), (1.0, NAN))), (2, 2)),
    ("metadata_illegal", Quantization(LINEAR, metadata=(("profile:bits", "4"),)), (8,)),
    ("storage_type", Quantization(LINEAR, data_type="INT8"), (8,)),
)


@pytest.mark.parametrize(("code", "kind", "shape"), FAULTS)
def test_a_fault_has_its_code(code: str, kind: Any, shape: Shape) -> None:
    with pytest.raises(SchemeRefused) as refused:
        translate(Quantization(kind), shape)
    assert f"profile.{code}" in {item.code for item in refused.value.findings}


@pytest.mark.parametrize(("code", "quantization", "shape"), AROUND)
def test_a_fault_around_a_kind_has_its_code(code: str, quantization: Quantization, shape: Shape) -> None:
    with pytest.raises(SchemeRefused) as refused:
        translate(quantization, shape)
    assert {item.code for item in refused.value.findings} == {f"profile.{code}"}


def changed(declared: Declared, name: str, **constants: bytes) -> Declared:
    """The declared type with the data of constants of one declaration exchanged."""
    made = []
    for declaration in declared.declarations:
        if declaration.name == name and isinstance(declaration.type, Structure):
            fields = tuple(
                Field(item.name, constant=replace(item.constant, data=constants[item.name]))
                if item.constant is not None and item.name in constants
                else item
                for item in declaration.type.fields
            )
            declaration = replace(declaration, type=Structure(fields))
        made.append(declaration)
    return replace(declared, declarations=tuple(made))


def int32(value: int) -> bytes:
    """A constant's data."""
    return np.int32(value).tobytes()


@pytest.mark.parametrize(
    ("form", "shape", "name", "constants"),
    [
        ("mxfp4_literal", (64,), "MXFP4_E2M1_BLOCK_32", {"mantissa_bits": int32(2)}),
        ("mxfp4_literal", (64,), "MXFP4_TILES", {"tile_shape": np.int64(16).tobytes()}),
        ("q4_k_literal", (256,), "Q4_K_SUBBLOCK_32", {"bits": int32(3)}),
        ("log4_split_sign", (8,), "LOG4", {"has_sign": b"\0"}),
        ("stq1_0_catalogue_420", (256,), "STQ1_0_BLOCK_256", {"sign_count": int32(63)}),
        ("spqr_literal", (16,), "SPQR", {"outlier_data_type": int32(1)}),
    ],
)
def test_constants_that_disagree_with_the_structure(
    form: str, shape: Shape, name: str, constants: dict[str, bytes]
) -> None:
    params = {item.name: item.default for item in SPECS[form].parameters} | {"outliers": 3}
    declared = translate(SPECS[form].quantization(shape, params), shape)
    with pytest.raises(SchemeRefused) as refused:
        describe(changed(declared, name, **constants))
    assert [item.code for item in refused.value.findings] == ["profile.redundant_differs"]


def test_a_type_that_no_profile_gives() -> None:
    declared = translate(Quantization(LINEAR), (8,))
    type_ = declared.declarations[0].type
    assert isinstance(type_, Structure)
    for fields in (
        type_.fields[1:],
        (*type_.fields, replace(type_.fields[1], name="more")),
        (type_.fields[0],),
    ):
        strange = Declared((Declaration(Structure(fields), "LINEAR"),), 0)
        with pytest.raises(SchemeRefused) as refused:
            describe(strange)
        assert [item.code for item in refused.value.findings] == ["profile.structure_unknown"]


def test_an_entry_of_the_metadata_that_is_no_parameter() -> None:
    declared = translate(Quantization(LINEAR), (8,))
    for entry in (("profile:bits", "4"), ("profile:other", "{"), ("profile:scale", '{"dims":[]}')):
        root = replace(declared.declarations[0], metadata=(entry,))
        with pytest.raises(SchemeRefused) as refused:
            describe(replace(declared, declarations=(root,)))
        assert [item.code for item in refused.value.findings] == ["profile.metadata_illegal"]


def test_every_code_is_given_somewhere() -> None:
    elsewhere = {
        "capacity",
        "decoder_absent",
        "structure_unknown",
        "redundant_differs",
    }  # test_random, test_literal
    given = {code for code, *_ in FAULTS} | {code for code, *_ in AROUND} | elsewhere
    # No decoder makes another number of values than it was asked for: `decoded_length` guards our own code.
    assert {item.name.partition(".")[2] for item in PROFILES} == given | {"decoded_length"}
