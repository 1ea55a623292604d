"""The vectors of the package: made by the generator, read strictly, and true of the kernels and checks."""

import json

import pytest

from ninfer_core.containers.directory import TensorObject
from ninfer_core.findings import FINDINGS
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, GROUPED, NVFP4, QUANTIZED, DirectFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import gaps
from ninfer_core.selfcheck import vectors
from ninfer_core.selfcheck.vectors.reading import KINDS, MEMBERS, read_cases
from ninfer_core.verify.words import check_block
from tests.vectors.make_packaged import TARGET, documents


def test_the_shipped_files_are_what_the_generator_makes():
    shipped = {path.name: path.read_bytes() for path in TARGET.glob("*.json") if path.name != "schema.json"}
    assert shipped == documents()


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda fmt: fmt.name)
def test_every_format_has_cases_of_every_kind_that_it_can_have(fmt):
    assert bool(vectors.encode_cases(fmt)) is (fmt is not NVFP4)
    assert vectors.reconstruct_cases(fmt)
    checks = vectors.check_cases(fmt)
    assert any(case.legal for case in checks)
    assert all(case.legal or case.fault in FINDINGS for case in checks)


def test_a_format_without_quantization_has_no_cases():
    assert vectors.cases("reconstruct", DirectFormat("BF16", 16, "")) == ()


def test_the_reasons_of_a_case_begin_where_they_are_stated():
    case = next(one for one in vectors.encode_cases(GROUPED[0]) if len(one.why) > 2)
    (first, reason), (second, other) = case.why[:2]
    assert case.reason(first) == case.reason(second - 1) == reason != case.reason(second) == other


def test_grouped_refusals_cover_every_kind():
    for fmt in GROUPED:
        kinds = {case.refusal.kind for case in vectors.encode_cases(fmt) if case.refusal}
        assert kinds == {"source_not_finite", "scale_overflow"}
    rows = {case.refusal.kind for case in vectors.encode_cases(FP8_E4M3FN_ROW_BF16S) if case.refusal}
    assert rows == {"source_not_finite", "scale_underflow"}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(extra=1),
        lambda d: d.update(schema="ninfer-gate/vectors/check/2"),
        lambda d: d.update(kind="decode"),
        lambda d: d.update(layout="contiguous-le-v1"),
        lambda d: d.update(format="Q4"),
        lambda d: d.update(cases=[]),
        lambda d: d["cases"].append(d["cases"][0]),
        lambda d: d["cases"][0].pop("why"),
        lambda d: d["cases"][0].update(payload=d["cases"][0]["payload"][2:]),
        lambda d: d["cases"][0].update(payload="zz"),
        lambda d: d["cases"][0].update(shape=[3]),
        lambda d: d["cases"][0].update(legal=not d["cases"][0]["legal"]),
    ],
)
def test_a_file_that_is_not_its_schema_is_refused(change):
    document = json.loads(vectors.packaged("check.Q6G64_F16S.json"))
    read_cases(json.dumps(document).encode(), "x")
    change(document)
    with pytest.raises(vectors.BrokenVectors):
        read_cases(json.dumps(document).encode(), "x")


def test_the_published_schema_has_the_members_that_are_read():
    schema = json.loads(vectors.packaged(vectors.SCHEMA))["$defs"]
    for kind in KINDS:
        assert schema[kind]["additionalProperties"] is False
        case = schema[kind]["properties"]["cases"]["items"]
        assert set(case["properties"]) == set(case["required"]) == MEMBERS[kind]
        assert case["additionalProperties"] is False
        document = json.loads(vectors.packaged(f"{kind}.Q4G64_F16S.json"))
        assert set(schema[kind]["properties"]) == document.keys()
    manifest = json.loads(vectors.packaged(vectors.MANIFEST))
    assert set(schema["manifest"]["properties"]) == manifest.keys()
    assert (
        set(schema["manifest"]["properties"]["files"]["items"]["properties"]) == manifest["files"][0].keys()
    )


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"kind": 1, "kind": 2}', b"[" * 50])
def test_a_file_that_is_no_document_is_refused(data):
    with pytest.raises(vectors.BrokenVectors):
        read_cases(data, "x")


def test_a_packaged_file_that_was_changed_is_refused(monkeypatch):
    vectors.cases.cache_clear()
    whole = vectors.packaged
    monkeypatch.setattr(vectors, "packaged", lambda name: whole(name).replace(b"golden", b"silver"))
    with pytest.raises(vectors.BrokenVectors, match="install again"):
        vectors.reconstruct_cases(NVFP4)
    vectors.cases.cache_clear()


@pytest.mark.parametrize("fmt", QUANTIZED, ids=lambda fmt: fmt.name)
def test_the_checks_find_exactly_the_stated_fault(fmt):
    layout = canonical_layout(fmt)
    for case in vectors.check_cases(fmt):
        gap = any(
            case.payload[hole.offset : hole.offset + hole.length].any()
            for hole in gaps(layout, fmt, case.shape)
        )
        assert gap is (case.fault == "layout.gap_nonzero"), case.id
        (block,) = layout.blocks(fmt, case.shape)
        planes = [
            case.payload[plane.span.offset : plane.span.offset + plane.span.length].copy().view(plane.word)
            for plane in layout.planes(fmt, case.shape)
        ]
        item = TensorObject(0, "w", case.shape, fmt, layout, 0, case.payload.size)
        found = {fault.code for fault in check_block(item, block, planes)}
        assert found == ({case.fault} - {None, "layout.gap_nonzero"}), case.id
