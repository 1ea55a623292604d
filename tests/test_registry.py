"""The registries are closed: exact names, nothing folded, nothing built from parts; every exclusion is explained."""

from fractions import Fraction

import pytest

from ninfer_core.compute import COMPUTE_PROFILES
from ninfer_core.encoders import PROFILES
from ninfer_core.errors import UnknownName
from ninfer_core.findings import FINDINGS, Finding, Findings
from ninfer_core.formats import DIRECT, FORMATS, GROUPED, QUANTIZED
from ninfer_core.layouts import LAYOUTS, canonical_layout
from ninfer_core.registry import Closed
from ninfer_core.rejected_names import FAMILIES, why_not
from ninfer_core.verify.checks import CHECKS
from service.cli.explain import describe

NINE = {
    "BF16": Fraction(16),
    "FP32": Fraction(32),
    "I32": Fraction(32),
    "Q4G64_F16S": Fraction(17, 4),
    "Q5G64_F16S": Fraction(21, 4),
    "Q6G64_F16S": Fraction(25, 4),
    "W8G32_F16S": Fraction(17, 2),
    "NVFP4": Fraction(9, 2),
    "FP8_E4M3FN_ROW_BF16S": Fraction(8),
}
# tensor-formats section 10, family by family, with the names people meet elsewhere.
EXCLUDED = {
    "direct binary16 and binary64": "FP16 F16 FLOAT16 HALF FP64 F64 DOUBLE",
    "other integers": "I8 I16 I64 U8 U16 U32 U64 INT8 INT4 UINT8 BOOL",
    "control types": "BF16_CTRL FP32_CTRL I32_CTRL",
    "two and three bits": "Q2 Q3 Q2G64_F16S Q3G64_F16S Q2_K Q3_K",
    "other group sizes": "Q4G32_F16S Q4G128_F16S Q5G32_F16S Q6G128_F16S W8G64_F16S W8G128_F16S",
    "other scale types": "Q4G64_BF16S Q4G64_F32S W8G32_F32S",
    "per channel": "W8_PER_CHANNEL Q4GK_F16S",
    "zero points": "ZERO_POINT Q4G64_F16S_ZP Q4G64_ZP ASYM_INT4 U4G64_F16S",
    "codebooks": "NF4 AQLM QUIP",
    "GGUF": "GGUF Q4_0 Q4_1 Q8_0 Q4_K Q4_K_M Q5_K Q6_K IQ4_NL IQ2_XXS GGML_TYPE_Q4_K",
    "GPTQ and AWQ": "GPTQ GPTQ_INT4 AWQ AWQ_INT4 MARLIN EXL2",
    "other 8-bit floats": "FP8 FP8_E4M3FN FP8_E4M3 FP8_E5M2 F8_E4M3 F8_E5M2 FP8_E4M3FN_ROW_F32S FP8_BLOCK",
    "other 4-bit floats": "FP4 MXFP4 MXFP8 E2M1 NVFP4_ROW MXINT8",
    "runtime state": "KV_INT8 KV_FP8 KVCACHE_INT8 KV_CACHE_FP8 W8A8 W4A16 ACTIVATION_INT8",
    "aliases": "bf16 Bf16 INT32 F32 FLOAT32 Q4 W8 Q4G64 W8G32 q4g64_f16s q4_g64_fp16 nvfp4 Q8G32_F16S",
}
NAMES = [name for names in EXCLUDED.values() for name in names.split()]


def test_the_nine_formats() -> None:
    assert {fmt.name: fmt.logical_bits_per_weight for fmt in FORMATS} == NINE
    assert len(DIRECT) + len(QUANTIZED) == len(FORMATS)
    assert [(fmt.code_bits, fmt.group, fmt.qmin, fmt.qmax) for fmt in GROUPED] == [
        (4, 64, -8, 7),
        (5, 64, -16, 15),
        (6, 64, -32, 31),
        (8, 32, -127, 127),
    ]


def test_the_four_layouts_hold_each_format_once() -> None:
    assert LAYOUTS.names == (
        "contiguous-le-v1",
        "row-split-k128-v1",
        "blockscale-k16-m128x4-v1",
        "row-scale-v1",
    )
    assert [canonical_layout(fmt).name for fmt in FORMATS].count("row-split-k128-v1") == len(GROUPED)
    assert sorted(fmt.name for layout in LAYOUTS for fmt in layout.formats) == sorted(NINE)


@pytest.mark.parametrize("name", NAMES)
def test_an_excluded_name_is_refused_and_explained(name: str) -> None:
    with pytest.raises(UnknownName) as refusal:
        FORMATS[name]
    assert refusal.value.known == tuple(NINE)
    assert name not in FORMATS
    assert why_not(name)
    lines = describe(name, 80)
    assert lines is not None
    assert any("not a registered numeric format" in line for line in lines)


@pytest.mark.parametrize("name", NINE)
def test_a_registered_name_is_not_among_the_excluded(name: str) -> None:
    assert why_not(name) is None
    for spelling in (name.lower(), f" {name}", f"{name} ", f"{name}_", f"{name}_V1"):
        if spelling != name:
            assert spelling not in FORMATS


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_examples_of_a_family_are_its_own(family: object) -> None:
    assert family in FAMILIES
    for example in next(one for one in FAMILIES if one is family).examples:
        assert example not in FORMATS
        assert why_not(example)


def test_an_unknown_name_is_not_guessed_at() -> None:
    assert why_not("something_else") is None
    assert describe("something_else", 80) is None


@pytest.mark.parametrize(
    "registry", [FORMATS, LAYOUTS, PROFILES, COMPUTE_PROFILES, FINDINGS], ids=lambda one: one.what
)
def test_a_registry_is_closed(registry: Closed) -> None:  # type: ignore[type-arg]
    assert len(set(registry.names)) == len(registry) > 0
    for name in registry.names:
        assert registry[name].name == name
        with pytest.raises(UnknownName):
            registry[name + "x"]
    with pytest.raises(TypeError):
        registry["new"] = registry[registry.names[0]]  # type: ignore[index]
    assert 7 not in registry


def test_a_registry_refuses_two_entries_of_one_name() -> None:
    with pytest.raises(ValueError, match="two entries"):
        Closed("numeric format", DIRECT[0], DIRECT[0])


def test_findings_take_registered_codes_only() -> None:
    findings = Findings()
    with pytest.raises(UnknownName):
        findings.add("values.something", "a message")
    findings.add("values.scale_invalid", "a message", object="w", where={"row": 1})
    findings.add("statistics.all_zero", "a message")
    assert findings.errors == (Finding("values.scale_invalid", "w", {"row": 1}, "", "", "a message"),)
    assert [finding.severity for finding in findings] == ["error", "advisory"]


def test_every_code_begins_with_its_check_and_explains_itself() -> None:
    for definition in FINDINGS:
        assert definition.check in (
            *CHECKS,
            "recipe",
            "target",
            "convert",
            "kernels",
            "scheme",
            "struct",
            "profile",
        )
        assert describe(definition.name, 80)
