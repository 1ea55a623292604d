"""Target documents: what a user may write, and every fault of what nobody should, all at once and in bounded memory."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.targets import TARGETS
from tests.targets.build import Document, codes, document, parsed, sound


def test_a_target_of_ones_own():
    target = sound()
    assert target.identity == "own/first"
    assert [item.name for item in target.objects] == [
        "frontend/tokenizer.json",
        "layers/0/qkv",
        "layers/0/mlp",
        "layers/1/qkv",
        "layers/1/mlp",
        "norm",
    ]
    formats = {item.name: item.format.name for item in target.objects if item.format is not None}
    assert (formats["layers/0/mlp"], formats["layers/1/mlp"]) == ("Q4G64_F16S", "W8G32_F16S")
    assert target["layers/1/mlp"].bytes == 4 * 128 + 4 * 4 * 2
    assert target.revisions == (1, 2)
    assert [view.name for view in target.views][:2] == ["layers/0/q", "layers/1/q"]
    assert target.key is target.recipe_id is target.filename is None


def test_the_digest_is_of_the_canonical_form_and_the_inventory_of_the_objects_alone():
    plain, spaced = sound(), parsed(json.dumps(document(), indent=4).encode())[0]
    renamed = sound(document(facts={"a": 1}))
    assert spaced is not None
    assert plain.digest == spaced.digest != renamed.digest
    assert plain.inventory_sha256 == renamed.inventory_sha256


def test_bundles_are_optional_groups():
    objects = [
        {"tensor": "a", "shape": [2], "format": "BF16"},
        {"tensor": "b", "shape": [2], "format": "BF16", "bundle": "draft"},
        {"tensor": "c", "shape": [2], "format": "BF16", "bundle": "draft"},
    ]
    target = sound(document(objects=objects, views=None, aliases=None))
    assert target.bundles == {"draft": ("b", "c")}


def test_views_may_be_listed_in_any_order():
    views = document()["views"]
    backwards = sound(document(views=views[::-1]))
    assert {(view.name, view.begin, view.end) for view in backwards.views} == {
        (view.name, view.begin, view.end) for view in sound().views
    }


def test_every_fault_is_told_at_once():
    _, findings = parsed(
        document(
            container_versions=[3],
            identity={"model_id": "", "weights_id": 7},
            sets={"layers": [0, 0]},
            objects=[
                {"tensor": "a", "shape": [0], "format": "F32"},
                {"tensor": "b{l}", "shape": [1], "format": "BF16"},
            ],
            colour="red",
        )
    )
    found = codes(findings)
    assert found["target.value_invalid"] == 4  # model_id, the set, the shape, the revisions
    assert found["target.value_type"] == 1
    assert found["target.format_unknown"] == 1
    assert found["target.template_invalid"] == 1
    assert found["target.member_unexpected"] == 1


def changed(**members: Any) -> Document:
    """The sound document with a first object of its own."""
    entry = {"tensor": "own", "shape": [4, 8], "format": "BF16"} | members
    entry = {name: value for name, value in entry.items() if value is not None}
    return document(objects=[*document()["objects"], entry])


def view(**members: Any) -> Document:
    """The sound document, the first of whose views was changed."""
    first, *others = document()["views"]
    return document(views=[{name: v for name, v in (first | members).items() if v is not None}, *others])


def alias(**members: Any) -> Document:
    """The sound document with another alias."""
    return document(aliases=[{"role": "other", "objects": ["layers/0/qkv"]} | members])


def experts(**members: Any) -> Document:
    """The sound document with an expert bank."""
    bank = {"of": ["layers/{l}/qkv"], "experts": 3, "stride": 4, "parts": {"gate": [0, 2], "up": [2, 4]}}
    return document(expert_views=[bank | members])


BROKEN: dict[str, tuple[Document, str]] = {
    "schema": (document(schema="ninfer-target/2"), "schema_unknown"),
    "no objects": (document(objects=None), "member_missing"),
    "empty objects": (document(objects=[], views=None, aliases=None), "value_invalid"),
    "objects no array": (document(objects={}, views=None, aliases=None), "value_type"),
    "identity member": (document(identity={"model_id": "a", "weights_id": "b", "c": 1}), "member_unexpected"),
    "unknown member": (changed(note="hi"), "member_unexpected"),
    "only outside a loop": (changed(only="odd"), "member_unexpected"),
    "unknown format": (changed(format="Q4_K"), "format_unknown"),
    "lower case format": (changed(format="bf16"), "format_unknown"),
    "unknown layout": (document(layouts={"BF16": "row-major"}), "layout_unknown"),
    "layout of another format": (document(layouts={"BF16": "row-scale-v1"}), "format_layout_pair"),
    "layout of no format": (document(layouts={"F64": "row-scale-v1"}), "format_unknown"),
    "encoding": (
        changed(tensor=None, shape=None, format=None, resource="r", encoding="gzip"),
        "value_invalid",
    ),
    "tensor and resource": (changed(resource="r", encoding="raw-bytes-v1"), "member_unexpected"),
    "shape for the layout": (changed(format="NVFP4"), "shape_unsupported"),
    "rank 17": (changed(shape=[1] * 17), "shape_unsupported"),
    "huge shape": (changed(shape=[2**40, 2**40]), "shape_unsupported"),
    "zero dimension": (changed(shape=[0]), "value_invalid"),
    "float dimension": (changed(shape=[4.0]), "value_invalid"),
    "boolean dimension": (changed(shape=[True]), "value_invalid"),
    "integer beyond doubles": (document(facts={"n": 2**53}), "integer_not_exact"),
    "control character": (changed(tensor="a\nb"), "value_invalid"),
    "variable out of scope": (changed(tensor="a{l}"), "template_invalid"),
    "single brace": (changed(tensor="a}"), "template_invalid"),
    "two of one name": (changed(tensor="norm"), "object_duplicate"),
    "bad file name": (document(canonical_filename="../a.ninfer"), "value_invalid"),
    "revision 3": (document(container_versions=[2, 3]), "value_invalid"),
    "no revision": (document(container_versions=[]), "value_invalid"),
    "reversed view": (view(rows=[4, 0]), "view_rows"),
    "empty view": (view(rows=[4, 4]), "view_rows"),
    "three ends": (view(rows=[0, 2, 4]), "view_rows"),
    "view past the end": (view(rows=[0, 13]), "view_rows"),
    "view leaves rows out": (view(rows=[1, 4]), "view_tiling"),
    "view overlaps": (view(rows=[0, 5]), "view_tiling"),
    "view of nothing": (view(of="layers/{l}/kv"), "view_parent_unknown"),
    "view of a resource": (view(of="frontend/tokenizer.json"), "view_parent_unknown"),
    "view in layers that are not": (view(each={"l": "none"}), "set_unknown"),
    "two views of one name": (view(view="layers/{l}/k"), "view_duplicate"),
    "view named as an object": (
        document(views=[*document()["views"], {"view": "layers/0/qkv", "of": "norm", "rows": [0, 16]}]),
        "view_duplicate",
    ),
    "view of an unknown variable": (view(view="layers/{m}/q"), "template_invalid"),
    "alias of nothing": (alias(objects=["nothing"]), "view_parent_unknown"),
    "alias of no objects": (alias(objects=[]), "value_invalid"),
    "alias axes": (alias(axes=[1, 1]), "alias_axes"),
    "alias rank": (alias(axes=[2, 1, 0]), "alias_axes"),
    "alias of many axes": (alias(axes=list(range(17))), "value_invalid"),
    "alias rows": (alias(rows=[10, 14]), "view_rows"),
    "alias named as an object": (alias(role="norm"), "view_duplicate"),
    "experts of nothing": (experts(of=["moe/{l}/gate"]), "view_parent_unknown"),
    "experts do not fill": (experts(experts=2), "view_tiling"),
    "parts leave rows out": (experts(parts={"gate": [0, 2]}), "view_tiling"),
    "parts beyond the stride": (experts(parts={"gate": [0, 2], "up": [2, 5]}), "view_tiling"),
    "totals": (document(totals={"objects": 7}), "totals_differ"),
    "formats": (document(totals={"formats": {"BF16": 3}}), "totals_differ"),
    "component count": (
        document(components={"prefixes": {"l": ["layers/"]}, "counts": {"l": {"objects": 5, "bytes": 1}}}),
        "totals_differ",
    ),
    "component without prefixes": (
        document(components={"prefixes": {}, "counts": {"l": {"objects": 5}}}),
        "member_unexpected",
    ),
    "inventory": (document(checks={"inventory_sha256": "0" * 64}), "checks_differ"),
    "views": (document(checks={"views": {"templates": 3, "bindings": 5}}), "checks_differ"),
    "no hash": (document(checks={"inventory_sha256": "12"}), "value_invalid"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_document_is_refused_with_its_fault(name: str):
    root, slug = BROKEN[name]
    target, findings = parsed(root)
    assert target is None
    assert set(codes(findings)) == {f"target.{slug}"}
    for finding in findings:
        assert finding.check == "target"
        assert finding.where["path"].startswith("$")


def loop(**members: Any) -> Document:
    """A document of one loop, changed."""
    body = [{"tensor": "a/{l}", "shape": [1], "format": "BF16"}]
    return document(objects=[{"each": "l", "in": "layers", "body": body} | members], views=None, aliases=None)


LOOPS: dict[str, tuple[Document, str]] = {
    "unknown set": (loop(**{"in": "nothing"}), "set_unknown"),
    "set no name": (loop(**{"in": ["layers"]}), "value_type"),
    "empty body": (loop(body=[]), "value_invalid"),
    "unknown only": (
        loop(body=[{"tensor": "a", "shape": [1], "format": "BF16", "only": "no"}]),
        "set_unknown",
    ),
    "name without its variable": (
        loop(body=[{"tensor": "a", "shape": [1], "format": "BF16"}]),
        "object_duplicate",
    ),
    "loop in a loop": (loop(body=[loop()["objects"][0]]), "loop_nested"),
    "overlapping only": (
        loop(
            body=[
                {"tensor": "a/{l}", "shape": [1], "format": "BF16", "only": "odd"},
                {"tensor": "a/{l}", "shape": [1], "format": "FP32"},
            ]
        ),
        "object_duplicate",
    ),
}


def test_views_of_alike_parents_with_one_fault_are_one_finding():
    _, findings = parsed(
        document(views=[{"view": "v/{l}", "of": "layers/{l}/qkv", "rows": [0, 1], "each": {"l": "layers"}}])
    )
    (finding,) = [one for one in findings if one.code == "target.view_tiling"]
    assert finding.count == len(finding.where["objects"]) == 2
    assert 'the views of "layers/0/qkv" and 1 more leave out rows' in finding.message


def test_a_name_without_its_variable_is_one_finding():
    body = [{"tensor": "a", "shape": [1], "format": "BF16"}]
    (finding,) = parsed(loop(body=body))[1]
    assert "lacks the variable of its loop" in finding.message


@pytest.mark.parametrize("name", LOOPS)
def test_a_broken_loop_is_refused_with_its_fault(name: str):
    root, slug = LOOPS[name]
    assert set(codes(parsed(root)[1])) == {f"target.{slug}"}


def test_an_empty_set_of_a_loop_is_a_fault():
    root = loop() | {"sets": {"layers": []}}
    assert set(codes(parsed(root)[1])) == {"target.set_empty"}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000, b'{"schema":"\\ud800"}', b"null"]
)
def test_what_is_no_document_at_all(text: bytes):
    target, findings = parsed(text)
    assert target is None
    assert all(finding.check == "target" for finding in findings)


def test_a_fault_of_a_parent_is_not_told_again_by_its_views():
    objects = [{"tensor": "layers/0/qkv", "shape": [12, 16], "format": "BF17"}]
    assert set(codes(parsed(document(objects=objects))[1])) == {"target.format_unknown"}


# Documents made to cost more than they are worth.

MANY = list(range(200_000))
COSTLY: dict[str, Document] = {
    "objects": document(
        sets={"n": MANY},
        objects=[
            {
                "each": "l",
                "in": "n",
                "body": [{"tensor": f"{i}/{{l}}", "shape": [1], "format": "BF16"} for i in range(100)],
            }
        ],
        views=None,
        aliases=None,
    ),
    "views": document(
        sets={"layers": [0, 1], "odd": [1], "even": [0], "n": MANY},
        views=[{"view": "{a}/{b}/{c}", "of": "norm", "rows": [0, 1], "each": {"a": "n", "b": "n", "c": "n"}}],
    ),
    "aliases": document(
        sets={"layers": [0, 1], "odd": [1], "even": [0], "n": MANY},
        aliases=[{"role": "{a}/{b}", "objects": ["norm"], "each": {"a": "n", "b": "n"}}],
    ),
    "entries that make nothing": document(
        sets={"n": MANY, "none": []},
        objects=[
            {
                "each": "l",
                "in": "n",
                "body": [
                    {"tensor": f"{i}/{{l}}", "shape": [1], "format": "BF16", "only": "none"}
                    for i in range(20_000)
                ],
            }
        ],
        views=None,
        aliases=None,
    ),
    "prefixes": document(
        sets={"n": MANY},
        objects=[{"each": "l", "in": "n", "body": [{"tensor": "{l}", "shape": [1], "format": "BF16"}]}],
        views=None,
        aliases=None,
        components={"prefixes": {str(i): [f"p{i}"] for i in range(20_000)}, "counts": {}},
    ),
    "expert patterns": document(
        sets={"n": MANY},
        objects=[
            {
                "each": "l",
                "in": "n",
                "body": [{"tensor": "1" * 40 + "{l}", "shape": [1, 1], "format": "BF16"}],
            }
        ],
        views=None,
        aliases=None,
        expert_views=[
            {"of": ["{a}{b}{c}{d}x"] * 1000, "experts": 1, "stride": 1, "parts": {"p": [0, 1]}},
        ],
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_document_is_refused_in_bounded_memory(tmp_path: Path, name: str):
    path = tmp_path / "target.json"
    path.write_text(json.dumps(COSTLY[name]))
    script = (
        "import re, sys\n"
        "from ninfer_core.findings import Findings\n"
        "from ninfer_core.targets import parse_target\n"
        "findings = Findings()\n"
        "assert parse_target(open(sys.argv[1], 'rb').read(), findings) is None\n"
        # Not from getrusage: that remembers the size of the process that started this one.
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]\n"
        "print(sorted({f.code for f in findings}), peak)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    found, _, kilobytes = done.stdout.strip().rpartition(" ")
    assert "target.too_many_objects" in found
    assert int(kilobytes) < 600_000


@given(st.data())
def test_no_document_ends_in_an_exception(data: st.DataObject):
    """The sound document with any one member, at any depth, replaced by anything."""
    anything = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    )
    root = document(
        expert_views=[{"of": ["layers/{l}/qkv"], "experts": 3, "stride": 4, "parts": {"p": [0, 4]}}],
        components={"prefixes": {"l": ["layers/"]}, "counts": {"l": {"objects": 4}}},
        totals={"objects": 6},
        checks={"views": {"templates": 3}},
    )
    node: Any = root
    while True:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        place = data.draw(st.sampled_from(places))
        inner = node[place]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            node[place] = data.draw(anything)
            break
        node = inner
    parsed(root)


def test_a_registered_document_whose_hashes_were_left_behind_is_refused():
    root = json.loads(json.dumps(dict(TARGETS[0].document)))
    root["objects"][6]["shape"][0] *= 2
    found = codes(parsed(root)[1])
    assert found["target.checks_differ"] == 3  # both inventories and the sizes; the views still bind
    assert found["target.totals_differ"] >= 1


def test_the_example_of_the_page_is_sound():
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    target = sound(json.loads(text))
    assert target.bundles == {"draft": ("draft/head", "draft/ids")}
    assert len(target.views) == 9
