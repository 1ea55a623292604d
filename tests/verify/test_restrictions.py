"""Demands of a recipe on stored words: who breaks them, where, how often, and how much it matters."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.containers.directory import ResourceObject, TensorObject
from ninfer_core.findings import Findings
from ninfer_core.formats import (
    BF16,
    FP8_E4M3FN_ROW_BF16S,
    FP32,
    GROUPED,
    I32,
    NVFP4,
    Q4G64_F16S,
    Q6G64_F16S,
    W8G32_F16S,
    NumericFormat,
)
from ninfer_core.io import MemorySource
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import canonical_layout
from ninfer_core.opening import open_path
from ninfer_core.recipes import Restriction, parse_recipe
from ninfer_core.recipes.inputs import Pin
from ninfer_core.recipes.restrictions import Scope
from ninfer_core.verify import asked, faults, verify, whole
from ninfer_core.verify.against import Against
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import finding_json
from ninfer_core.verify.restrictions import check_block, check_pin, judged
from ninfer_core.verify.tensor import read_planes
from ninfer_core.verify.whole import object_tasks
from tests.build import recipe, write_artifact
from tests.build import tensor as source

LEAD = 64  # bytes before the object in its payload


def claim(rule, basis="derived", minimum=None, maximum=None):
    return Restriction(Scope(None, None, "*"), rule, basis, "$.restrictions[0]", minimum, maximum)


def tensor(fmt: NumericFormat, *shape: int) -> TensorObject:
    layout = canonical_layout(fmt)
    return TensorObject(0, "w", shape, fmt, layout, LEAD, layout.encoded_size(fmt, shape))


def payload_of(item: TensorObject, *planes):
    """The payload that holds these words, plane by plane."""
    content = np.zeros(item.bytes, np.uint8)
    for plane, words in zip(item.layout.planes(item.format, item.shape), planes, strict=True):
        raw = np.ascontiguousarray(words).astype(plane.word).view(np.uint8).reshape(-1)
        content[plane.span.offset : plane.span.offset + plane.span.length] = raw
    return content


def grouped_payload(item: TensorObject, planes: GroupedPlanes):
    return payload_of(item, *(words for words in (planes.base, planes.high, planes.scales) if words.size))


def judge(item, content, *claims):
    """Merged faults of the blocks and of the whole object, as the engine merges them."""
    source, pool = MemorySource("a", bytes(LEAD) + content.tobytes()), Pool()
    found = []
    for block in item.layout.blocks(item.format, item.shape):
        planes = read_planes(item, block, source, item.offset, pool.buffers)
        found += check_block(item, block, planes, claims)
    for task in object_tasks(item, source, claims, pool):
        part = task.run()
        assert part.error is None
        found += part.faults
    return faults.merge(found)


def bf16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def encode(fmt, source):
    planes = GroupedPlanes.empty(fmt, *source.shape)
    cpu.encode(fmt, source, "BF16", planes)
    return planes


SHAPE = claim("canonical_group_shape")


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize("columns", [128, 70, 200])
def test_c4_accepts_the_canonical_encoder_and_places_what_is_not(fmt, columns):
    item = tensor(fmt, 9, columns)
    source = bf16(np.random.default_rng(3).normal(size=(9, columns)))
    source[2] = 0
    source[3] = 0x0080  # the smallest normal BF16 value: rescued scales
    planes = encode(fmt, source)
    assert judge(item, grouped_payload(item, planes), SHAPE) == []
    per_row = planes.scales.size // 9
    planes.scales[5 * per_row + 1] = 0x3C00  # 1.0 over codes of another scale stays canonical in shape
    assert judge(item, grouped_payload(item, planes), SHAPE) == []
    planes.scales[2 * per_row] = 0x0002  # zero codes
    planes.scales[7 * per_row] = 0x7C00  # C1 says it
    content = grouped_payload(item, planes)
    (fault,) = judge(item, content, SHAPE)
    assert (fault.code, fault.count, fault.severity) == ("restrictions.canonical_group_shape", 1, "error")
    assert {key: fault.where[key] for key in ("row", "group", "word", "largest")} == {
        "row": 2,
        "group": 0,
        "word": "0x0002",
        "largest": 0,
    }
    at = fault.where["byte"]
    assert content[at : at + 2].tobytes() == b"\x02\x00"


def test_c4_names_the_largest_code_of_the_first_group():
    item = tensor(Q6G64_F16S, 4, 256)
    planes = encode(Q6G64_F16S, bf16(np.random.default_rng(1).normal(size=(4, 256))))
    for group in (7, 13):
        planes.base[group * 32 : (group + 1) * 32] = 0x11  # low nibbles 1, high bits as they are
        planes.high[group * 16 : (group + 1) * 16] = 0
    (fault,) = judge(item, grouped_payload(item, planes), SHAPE)
    assert fault.count == 2
    assert (fault.where["row"], fault.where["group"], fault.where["largest"]) == (1, 3, 1)
    assert (fault.expected, fault.found) == ("largest code magnitude 31", "1")


def test_c4_sees_minus_128_and_leaves_other_formats_alone():
    item = tensor(W8G32_F16S, 1, 128)
    planes = encode(W8G32_F16S, bf16(np.linspace(-1, 1, 128)[None]))
    planes.base[127] = 0x80
    (fault,) = judge(item, grouped_payload(item, planes), SHAPE)
    assert (fault.where["group"], fault.where["largest"]) == (3, 128)
    other = tensor(NVFP4, 128, 64)
    assert judge(other, np.full(other.bytes, 0xFF, np.uint8), SHAPE, claim("canonical_fp8_row_shape")) == []


def test_c4_places_a_group_in_a_row_that_spans_blocks():
    item = tensor(Q4G64_F16S, 2, 5_000_000)
    groups = 78_126  # 5,000,000 lanes are 78,125 groups, padded to an even number
    base = np.zeros((2 * groups, 32), np.uint8)
    base[:, 3] = 0x07
    scales = np.full((2, groups), 0x3C00, np.uint16)
    scales[:, -1], base[[groups - 1, 2 * groups - 1], 3] = 0, 0
    assert judge(item, payload_of(item, base, scales), SHAPE) == []
    base[groups + 70_000, 3] = 0x05
    (fault,) = judge(item, payload_of(item, base, scales), SHAPE)
    assert (fault.where["row"], fault.where["group"], fault.where["largest"]) == (1, 70_000, 5)


ROWS = claim("canonical_fp8_row_shape")


def test_c7_by_the_row():
    item = tensor(FP8_E4M3FN_ROW_BF16S, 8, 300)
    codes = np.full((8, 300), 0x31, np.uint8)
    codes[:, 7] = 0x7E
    codes[1, 7] = 0xFE  # the sign does not matter
    scales = np.full(8, 0x3A00, np.uint16)
    scales[2], codes[2] = 0, 0
    scales[3], codes[3, 7] = 0x007F, 0x70  # a subnormal scale
    scales[4], codes[4, 7] = 0x7F80, 0x70  # C6 says it
    scales[5], codes[5] = 0, 0x81  # C6 says it
    assert judge(item, payload_of(item, codes, scales), ROWS) == []
    codes[2, 9] = 0x80
    codes[6, 7] = 0x7D
    content = payload_of(item, codes, scales)
    (fault,) = judge(item, content, ROWS)
    assert (fault.code, fault.count) == ("restrictions.canonical_fp8_row_shape", 2)
    assert fault.where == {"row": 2, "word": "0x0000", "column": 9, "byte": 609, "code": "0x80"}
    assert content[609] == 0x80
    assert fault.samples == {"rows": (2, 6)}
    codes[2, 9] = 0
    content = payload_of(item, codes, scales)
    (fault,) = judge(item, content, ROWS)
    assert {key: fault.where[key] for key in ("row", "word")} == {"row": 6, "word": "0x3a00"}
    assert content[fault.where["byte"] : fault.where["byte"] + 2].tobytes() == b"\x00\x3a"


def test_c7_judges_a_row_that_spans_blocks_as_a_whole():
    item = tensor(FP8_E4M3FN_ROW_BF16S, 4, 5_000_000)
    assert len(list(item.layout.blocks(item.format, item.shape))) > 4
    codes = np.zeros((4, 5_000_000), np.uint8)
    codes[:, 0] = 0x20
    codes[0, 4_999_999] = codes[1, 3] = 0x7E  # in one block of the row, not in the other
    scales = np.full(4, 0x3A00, np.uint16)
    scales[2], codes[2, 0] = 0, 0
    codes[3, 4_500_000] = 0xFE
    assert judge(item, payload_of(item, codes, scales), ROWS) == []
    codes[3, 4_500_000] = 0
    codes[2, 4_700_000] = 0x80
    (fault,) = judge(item, payload_of(item, codes, scales), ROWS)
    assert fault.count == 2
    assert (fault.where["row"], fault.where["column"], fault.where["byte"]) == (2, 4_700_000, 14_700_000)
    assert fault.samples == {"rows": (2, 3)}


def words(item: TensorObject, places: dict[int, int], fill: int = 0):
    content = np.full(item.shape, fill, f"<u{item.bytes // int(np.prod(item.shape))}").reshape(-1)
    for place, word in places.items():
        content[place] = word
    return payload_of(item, content)


@pytest.mark.parametrize(
    ("fmt", "rule", "fill", "breaches", "good"),
    [
        (BF16, "stored_finite", 0x3F80, [0x7F80, 0xFF80, 0x7FC0, 0xFFFF], [0x7F7F, 0xFF7F, 0x8000]),
        (FP32, "stored_finite", 0, [0x7F800000, 0xFF800001], [0x7F7FFFFF, 0xFF7FFFFF]),
        (FP32, "fp32_low16_zero", 0x3F800000, [0x3F800001, 0x8000], [0x7FC00000, 0x80000000]),
        (FP32, "finite_positive", 1, [0, 0x80000000, 0x80000001, 0x7F800000, 0x7FC00000], [0x7F7FFFFF]),
        (BF16, "finite_positive", 1, [0, 0x8000, 0xBF80, 0x7F80], [0x7F7F]),
    ],
)
def test_c8_of_single_words(fmt, rule, fill, breaches, good):
    item = tensor(fmt, 40, 50)
    demand = claim(rule)
    assert judge(item, words(item, dict(enumerate(good, 100)), fill), demand) == []
    for word in breaches:
        content = words(item, {1234: word, 1500: word, 700: good[0]}, fill)
        (fault,) = judge(item, content, demand)
        size = item.bytes // 2000
        assert (fault.code, fault.count, fault.severity) == (f"restrictions.{rule}", 2, "error")
        assert fault.where == {"index": 1234, "byte": 1234 * size, "word": f"0x{word:0{2 * size}x}"}
        assert fault.samples == {"elements": (1234, 1500)}
        assert content[1234 * size : 1235 * size].tobytes() == word.to_bytes(size, "little")


def test_c8_int_range():
    item = tensor(I32, 3000)
    demand = claim("int_range", minimum=-5, maximum=999)
    minus_five = (1 << 32) - 5
    assert judge(item, words(item, {0: 999, 1: minus_five}), demand) == []
    (fault,) = judge(item, words(item, {2000: 1000, 2500: minus_five - 1}), demand)
    assert (fault.count, fault.where["index"], fault.where["value"]) == (2, 2000, 1000)
    assert fault.expected == "-5 to 999"
    (fault,) = judge(item, words(item, {2500: minus_five - 1}), demand)
    assert fault.where == {"index": 2500, "byte": 10_000, "value": -6}
    far = claim("int_range", minimum=0, maximum=(1 << 53) - 1)
    assert judge(item, words(item, {7: 0x7FFFFFFF}), far) == []


def test_rules_say_nothing_of_formats_that_they_are_not_about():
    item = tensor(I32, 10)
    content = words(item, {3: 0xFFFFFFFF, 4: 0x7F800001})
    assert judge(item, content, *map(claim, ("stored_finite", "fp32_low16_zero", "finite_positive"))) == []
    item = tensor(BF16, 10)
    assert (
        judge(item, words(item, {3: 0xFFFF}), claim("fp32_low16_zero"), claim("int_range", "derived", 0, 1))
        == []
    )


def test_the_severity_follows_the_basis_and_the_strictest_counts_once():
    item = tensor(BF16, 10)
    content = words(item, {3: 0x7F80})
    assert [fault.severity for fault in judge(item, content, claim("stored_finite", "recommended"))] == [
        "advisory"
    ]
    for basis in ("contract", "derived"):
        both = (
            claim("stored_finite", "recommended"),
            claim("stored_finite", basis),
            claim("stored_finite", basis),
        )
        for claims in (both, both[::-1]):
            (fault,) = judge(item, content, *claims)
            assert (fault.severity, fault.count) == ("error", 1)
    ranges = claim("int_range", "recommended", 0, 5), claim("int_range", "contract", 0, 9)
    item = tensor(I32, 10)
    found = {(fault.severity, fault.count) for fault in judge(item, words(item, {1: 7, 2: 10}), *ranges)}
    assert found == {("advisory", 2), ("error", 1)}


def test_rules_about_sources_are_not_judged():
    rules = ("source_finite", "group_scale_fits_f16", "contains_special_ids", "nvfp4_words_valid")
    assert judged(map(claim, rules)) == ()


UNIQUE = claim("unique")


def test_c8_unique_names_both_places():
    item = tensor(I32, 3000)
    content = np.arange(3000, dtype=np.uint32)
    assert judge(item, payload_of(item, content), UNIQUE) == []
    content[10] = content[2000] = content[2900] = 0xFFFFFFFE
    content[1500] = 3
    (fault,) = judge(item, payload_of(item, content), UNIQUE)
    assert (fault.code, fault.count) == ("restrictions.unique", 3)
    assert fault.where == {"index": 1500, "first": 3, "byte": 6000, "value": 3}
    content[1500] = 1500
    (fault,) = judge(item, payload_of(item, content), UNIQUE)
    assert fault.where == {"index": 2000, "first": 10, "byte": 8000, "value": -2}


@settings(max_examples=60, deadline=None)
@given(
    stored=st.lists(st.integers(0, 60) | st.integers(0, 2**32 - 1), min_size=1, max_size=60),
    size=st.sampled_from([1, 2, 1 << 26]),
)
def test_c8_unique_equals_the_oracle_over_any_number_of_passes(stored, size):
    low = min(stored)
    if size < 3:
        stored = [low + (word - low) % 100 for word in stored]  # else there would be a billion passes
    before = whole.SEEN_BYTES
    whole.SEEN_BYTES = size
    try:
        item = tensor(I32, len(stored))
        found = judge(item, payload_of(item, np.array(stored, np.uint32)), UNIQUE)
    finally:
        whole.SEEN_BYTES = before
    repeated = [place for place, word in enumerate(stored) if word in stored[:place]]
    assert [fault.count for fault in found] == ([len(repeated)] if repeated else [])
    assert sum(Counter(stored).values()) - len(set(stored)) == len(repeated)
    if repeated:
        assert found[0].where["index"] == repeated[0]
        assert found[0].where["first"] == stored.index(stored[repeated[0]])


def test_c8_unique_of_two_byte_words():
    item = tensor(BF16, 4, 2)
    (fault,) = judge(item, words(item, {0: 5, 1: 6, 2: 7, 3: 8, 4: 9, 5: 7, 6: 1}), UNIQUE)
    assert fault.where == {"index": 5, "first": 2, "byte": 10, "value": "0x0007"}


def test_a_cut_payload_is_no_answer():
    item = tensor(I32, 1000)
    source = MemorySource("a", bytes(LEAD + 100))
    (task,) = object_tasks(item, source, [UNIQUE], Pool())
    assert task.run().error is not None


@pytest.mark.parametrize(
    ("pin", "expected"),
    [
        (Pin(None, "ab" * 32), None),
        (Pin(10, None), None),
        (Pin(10, "ab" * 32), None),
        (Pin(None, "cd" * 32), "sha256 " + "cd" * 32),
        (Pin(11, None), "11 bytes"),
        (Pin(11, "cd" * 32), "11 bytes"),
        (Pin(10, "cd" * 32), "sha256 " + "cd" * 32),
    ],
)
def test_c9_pin(pin: Pin, expected: str | None):
    resource = ResourceObject(3, "frontend/tokenizer.json", "file-bytes-v1", 0, 10)
    fault = check_pin(resource, "ab" * 32, pin)
    assert (None if fault is None else (fault.code, fault.expected)) == (
        None if expected is None else ("restrictions.resource_pin", expected)
    )


def engine(path, rules, restrictions, workers=None):
    """The report of `restrictions` alone, from a recipe without any source."""
    findings = Findings()
    document = recipe(rules, restrictions=restrictions)
    parsed = parse_recipe(json.dumps(document).encode(), findings)
    assert parsed is not None, list(findings)
    with open_path(path) as opened:
        return verify(opened, asked(["restrictions"]), Against(recipe=parsed), workers=workers)


def test_objects_of_many_blocks_through_the_engine(tmp_path):
    """Tasks of blocks and of whole objects merge into one finding each, at its place in the file."""
    rng = np.random.default_rng(4)
    wide, tall = (2, 5_000_000), (3000, 4096)
    grouped = encode(Q4G64_F16S, bf16(rng.normal(size=tall)))
    grouped.base[[64 * 32 * 1500, 64 * 32 * 2999 + 7]] = 0x88  # code -8: rows 1500 and 2999, groups 0
    codes = np.full(wide, 0x31, np.uint8)
    codes[1, 4_900_000] = 0x7E
    ids = rng.permutation(3_000_000).astype(np.uint32)
    ids[2_999_999] = ids[4]
    tensors = {
        "tall": (Q4G64_F16S, tall, grouped_payload(tensor(Q4G64_F16S, *tall), grouped)),
        "wide": (
            FP8_E4M3FN_ROW_BF16S,
            wide,
            payload_of(tensor(FP8_E4M3FN_ROW_BF16S, *wide), codes, np.full(2, 0x3A00, np.uint16)),
        ),
        "ids": (I32, (3_000_000,), ids.view(np.uint8)),
    }
    path = write_artifact(tmp_path / "a.ninfer", tensors)
    rules = [
        {
            "object": "tall",
            "value": source("tall", tall, "BF16"),
            "encode": "MAXABS_F16_RECIP_RNE_V1",
            "format": "Q4G64_F16S",
        },
        {
            "object": "wide",
            "value": source("wide", wide, "BF16"),
            "encode": "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1",
            "format": "FP8_E4M3FN_ROW_BF16S",
        },
        {
            "object": "ids",
            "value": source("ids", (3_000_000,), "I32"),
            "encode": "copy_words",
            "format": "I32",
        },
    ]
    restrictions = [
        {"scope": {"object": "tall"}, "rule": "canonical_group_shape", "basis": "derived"},
        {"scope": {"format": "FP8_E4M3FN_ROW_BF16S"}, "rule": "canonical_fp8_row_shape", "basis": "derived"},
        {"scope": {"object": "ids"}, "rule": "unique", "basis": "contract"},
    ]
    report = engine(path, rules, restrictions)
    found = {item.object: item for item in report.findings}
    assert report.verdict == "failed"
    assert {name: (item.definition.rule, item.count) for name, item in found.items()} == {
        "tall": ("C4", 2),
        "wide": ("C7", 1),
        "ids": ("C8", 1),
    }
    assert (found["tall"].where["row"], found["tall"].where["group"], found["tall"].where["largest"]) == (
        1500,
        0,
        8,
    )
    assert found["wide"].where["row"] == 0
    assert (found["ids"].where["index"], found["ids"].where["first"]) == (2_999_999, 4)
    content = path.read_bytes()
    for item in found.values():
        size = 4 if item.object == "ids" else 2
        word = int.from_bytes(content[item.where["offset"] : item.where["offset"] + size], "little")
        assert word == (item.where["value"] if item.object == "ids" else int(item.where["word"], 16))
    again = engine(path, rules, restrictions, workers=1)
    assert [finding_json(item) for item in again.findings] == [finding_json(item) for item in report.findings]
    outcomes = {check.name: (check.outcome, check.coverage) for check in report.checks}
    assert outcomes["restrictions"] == ("failed", "full")
    assert engine(path, rules, restrictions[:0]).verdict == "passed"
