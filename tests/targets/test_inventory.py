"""Check B: every difference between an artifact and its target is named, and nothing else is."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.targets import TARGETS, Target, registered
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.unreferenced import scan
from tests import mini_hybrid, mini_hybrid_artifact
from tests.build import ninfer_file
from tests.targets import sparse
from tests.targets.build import codes, document, inventory, opened, rules, sound
from tests.vectors.load import HERE

CASES = json.loads((HERE / "targets" / "inventory" / "manifest.json").read_text())["cases"]
REAL = [target for target in TARGETS if not target.document["facts"].get("synthetic")]
ENTRY = ("M01", "M02", "M03", "M04", "M05", "M06", "M07", "M08", "M09", "M10", "M11", "M12")


def mini() -> Target:
    """The synthetic target."""
    return registered("mini-hybrid", "mixed")[0]


def written(path: Path, content: bytes) -> Path:
    """A file with this content."""
    path.write_bytes(content)
    return path


# The mutations of structure and inventory.


@pytest.mark.parametrize("canonical", [False, True])
def test_the_golden_artifact_has_nothing_to_say(tmp_path: Path, canonical: bool):
    path = written(tmp_path / "a.ninfer", mini_hybrid_artifact.artifact())
    excluded, findings = inventory(path, mini(), canonical)
    assert not list(findings)
    assert excluded == frozenset()


@pytest.mark.parametrize("number", ENTRY)
def test_mutations_give_exactly_their_rules(tmp_path: Path, number: str):
    mutation = next(entry for entry in mini_hybrid.mutations() if entry["id"] == number)
    path = written(tmp_path / "a.ninfer", mini_hybrid.mutate(mini_hybrid_artifact.artifact(), mutation))
    artifact, structure = opened(path)
    if structure.errors:
        assert rules(structure) == set(mutation["expect"])
        assert not rules(structure, "advisory")
        return
    assert artifact is not None
    _, findings = inventory(path, mini(), canonical=True)
    assert rules(findings) == set(mutation["expect"])
    assert not rules(findings, "advisory")
    assert len(findings) == 1


def test_a_contradicted_revision_is_told_by_both_numbers(tmp_path: Path):
    content = bytearray(mini_hybrid_artifact.artifact())
    content[7] = 3
    artifact, findings = opened(written(tmp_path / "a.ninfer", bytes(content)))
    assert artifact is None
    (finding,) = findings
    assert finding.code == "structure.revision_contradicted"
    assert (finding.where["revision"], finding.where["directory"]) == (3, 2)


def test_a_directory_of_revision_3_under_another_magic_is_told(tmp_path: Path):
    content = bytearray((HERE / "golden" / "v3" / "v3_nine_formats.ninfer").read_bytes())
    content[7] = 2
    _, findings = opened(written(tmp_path / "a.ninfer", bytes(content)))
    (finding,) = findings
    assert finding.code == "structure.revision_contradicted"
    assert (finding.where["revision"], finding.where["directory"]) == (2, 3)


# The real targets: whole directories over holes.


@pytest.fixture(params=REAL, ids=lambda target: target.identity)
def real(request: pytest.FixtureRequest) -> Target:
    """Each of the five."""
    target: Target = request.param
    return target


def test_a_canonical_file_of_every_revision_is_complete(tmp_path: Path, real: Target):
    for revision in real.revisions:
        path = sparse.directory(real, revision).write(tmp_path / f"{revision}.ninfer")
        excluded, findings = inventory(path, real, canonical=True)
        assert not list(findings)
        assert excluded == frozenset()
        path.unlink()


Edit = Callable[[list[sparse.Entry]], None]


def edited(tmp_path: Path, target: Target, edit: Edit) -> Path:
    """A file of the target in which one thing was changed; its places stay."""
    listed = sparse.entries(target.objects, sparse.resource_bytes(target))
    edit(listed)
    return sparse.directory(target, 2, listed).write(tmp_path / "a.ninfer")


def test_a_removed_object_is_named(tmp_path: Path, real: Target):
    name = real.objects[500].name
    excluded, findings = inventory(edited(tmp_path, real, lambda listed: listed.pop(500) and None), real)
    (finding,) = findings.errors
    assert (finding.code, finding.object) == ("inventory.object_missing", name)
    assert excluded == frozenset()


def test_a_renamed_object_is_named_on_both_sides(tmp_path: Path, real: Target):
    name = real.objects[500].name
    excluded, findings = inventory(
        edited(tmp_path, real, lambda listed: listed[500].update(name="x/y")), real
    )
    missing, unexpected = findings.errors
    assert (missing.code, missing.object, missing.where) == (
        "inventory.object_missing",
        name,
        {"renamed": "x/y"},
    )
    assert (unexpected.code, unexpected.object) == ("inventory.object_unexpected", "x/y")
    assert unexpected.where == {"renamed": name}
    assert "perhaps renamed" in missing.message
    assert excluded == {500}
    assert findings.failed == {500}


def test_a_transposed_object_is_named(tmp_path: Path, real: Target):
    place = next(
        index
        for index, item in enumerate(real.objects)
        if item.format is not None and item.format.name == "BF16" and len(item.shape or ()) == 2
    )
    path = edited(tmp_path, real, lambda listed: listed[place]["shape"].reverse())
    excluded, findings = inventory(path, real)
    (finding,) = findings.errors
    assert (finding.code, finding.object) == ("inventory.object_differs", real.objects[place].name)
    assert finding.where == {"differs": ["shape"]}
    wanted = list(real.objects[place].shape or ())
    assert f"its shape is {wanted[::-1]}, not {wanted}" in finding.message
    assert "|" not in finding.message
    assert excluded == {place}


def test_every_missing_and_every_unexpected_object_is_listed(tmp_path: Path, real: Target):
    def rename(listed: list[sparse.Entry]) -> None:
        for entry in listed:
            entry["name"] = "other/" + entry["name"]

    _, findings = inventory(edited(tmp_path, real, rename), real)
    found = codes(findings)
    assert found["inventory.object_missing"] == found["inventory.object_unexpected"] == len(real.objects)


def test_slack_and_order_are_advisories_unless_a_canonical_file_is_asked(tmp_path: Path):
    target = sound()
    listed = sparse.entries(target.objects, {"frontend/tokenizer.json": 7})
    last = listed[-1]
    last["offset"] += 256
    listed[1]["name"], listed[3]["name"] = listed[3]["name"], listed[1]["name"]  # both are BF16 [12, 16]
    path = sparse.directory(target, 2, listed).write(tmp_path / "a.ninfer")
    _, findings = inventory(path, target)
    assert not findings.errors
    wanted = {"inventory.order_not_canonical": 1, "inventory.placement_not_canonical": 1}
    assert codes(findings, "advisory") == wanted
    order, slack = findings
    assert (order.where["position"], order.count) == (1, 2)
    assert (order.expected, order.found) == (listed[3]["name"], listed[1]["name"])
    assert slack.where["kind"] == "slack"
    assert slack.count == 256
    _, findings = inventory(path, target, canonical=True)
    assert codes(findings) == wanted
    assert not codes(findings, "advisory")


def test_nonzero_trailing_bytes_are_one_error_of_a_canonical_file_and_an_advisory_of_any_other(
    tmp_path: Path,
):
    mutation = next(entry for entry in mini_hybrid.mutations() if entry["id"] == "M11")
    content = mini_hybrid.mutate(mini_hybrid_artifact.artifact(), mutation)
    path = written(tmp_path / "a.ninfer", content)
    _, findings = inventory(path, mini(), canonical=True)
    (finding,) = findings
    assert (finding.code, finding.severity) == ("inventory.placement_not_canonical", "error")
    assert finding.where["kind"] == "trailing"
    assert finding.where["offset"] == len(content) - 2
    _, findings = inventory(path, mini())
    assert set(codes(findings, "advisory")) == {
        "inventory.placement_not_canonical",
        "structure.unreferenced_bytes",
    }


def test_a_revision_that_the_contract_does_not_state_is_said(tmp_path: Path):
    target = sound(
        document(container_versions=[2], identity={"model_id": "own", "weights_id": "groupwise-int"})
    )
    listed = sparse.entries(target.objects, {"frontend/tokenizer.json": 7})
    path = sparse.directory(target, 1, listed).write(tmp_path / "a.ninfer")
    _, findings = inventory(path, target)
    (finding,) = findings
    assert (finding.code, finding.severity) == ("inventory.revision_not_stated", "advisory")


def test_a_file_of_revision_1_is_groupwise_int(tmp_path: Path):
    target = sound()
    listed = sparse.entries(target.objects, {"frontend/tokenizer.json": 7})
    path = sparse.directory(target, 1, listed).write(tmp_path / "a.ninfer")
    _, findings = inventory(path, target)
    (finding,) = findings.errors
    assert finding.code == "inventory.identity_differs"
    assert finding.where == {"differs": ["weights_id"]}
    assert (finding.expected, finding.found) == ("own/first", "own/groupwise-int")


# Optional bundles.


def profile() -> Target:
    """The profile of the cases as a target document."""
    stated = json.loads((HERE / "targets" / "inventory" / "profile.json").read_text())

    def entry(name: str, facts: Mapping[str, Any], **bundle: str) -> dict[str, Any]:
        return {"tensor": name, "shape": facts["shape"], "format": facts["format"], **bundle}

    objects = [entry(name, facts) for name, facts in stated["required"].items()]
    objects += [
        entry(name, facts, bundle=bundle)
        for bundle, members in stated["optional_bundles"].items()
        for name, facts in members.items()
    ]
    every = [*stated["required"].values(), *stated["optional_bundles"]["companion"].values()]
    return sound(
        {
            "schema": "ninfer-target/1",
            "identity": {"model_id": stated["model_id"], "weights_id": stated["weights_id"]},
            "layouts": {facts["format"]: facts["layout"] for facts in every},
            "objects": objects,
        }
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_field_case(case: Mapping[str, Any]):
    _, findings = inventory(HERE / "targets" / case["file"], profile())
    if case["expected"] == "accept":
        assert not findings.errors
        return
    place = dict(case["where"])
    first = next(finding for finding in findings.errors if finding.code == f"inventory.{case['finding']}")
    if "object" in place:
        assert first.object == place.pop("object")
    if (extra := place.pop("also_unexpected", None)) is not None:
        others = [item.object for item in findings.errors if item.code == "inventory.object_unexpected"]
        assert others == [extra]
    assert {key: first.where[key] for key in place} == place


def test_the_objects_of_a_partial_bundle_that_are_there_go_on_to_other_checks():
    excluded, findings = inventory(HERE / "targets" / "inventory" / "bundle_half_present.ninfer", profile())
    (finding,) = findings.errors
    assert finding.where == {"bundle": "companion", "missing": ["d"], "present": ["c"]}
    assert excluded == frozenset()


# Revision 3.


def revision_3(bindings: Mapping[str, Any], renamed: str | None = None, **members: Any) -> bytes:
    """A file of revision 3 with the objects of `sound()`."""
    spelled = {"BF16": "bf16", "Q4G64_F16S": "q4_g64_fp16", "W8G32_F16S": "q8_g32_fp16"}
    layouts = {"contiguous-le-v1": "contiguous_le_v1", "row-split-k128-v1": "row_split_k128_v1"}
    listed = sparse.entries(sound().objects, {"frontend/tokenizer.json": 7})
    objects = []
    for entry in listed:
        changed = {"id": entry.pop("name"), **entry}
        if "format" in entry:
            changed |= {"format": spelled[entry["format"]], "layout": layouts[entry["layout"]]}
        else:
            changed["encoding"] = "raw_bytes_v1"
        objects.append(changed)
    if renamed is not None:
        objects[-1]["id"] = renamed
    size = objects[-1]["offset"] + objects[-1]["bytes"]
    root = {
        "components": {"text": {"config": {}}},
        "objects": objects,
        "bindings": bindings,
        "uses": [],
        "files": [{"path": None, "payload_bytes": size}],
        **members,
    }
    return ninfer_file(3, root, bytes(size))


def parts(*ranges: tuple[str, int, int]) -> Mapping[str, Any]:
    """A binding of parts."""
    return {"parts": [{"object": name, "range": [begin, end]} for name, begin, end in ranges]}


QKV = "layers/0/qkv"  # [12, 16]; the view layers/0/k is its rows 4 to 8
OWN = {item.name: {"object": item.name} for item in sound().objects if item.kind == "tensor"}
VIEWS = {
    f"layers/0/{part}": parts((QKV, begin, begin + 64)) for part, begin in (("q", 0), ("k", 64), ("v", 128))
}


def without(*names: str) -> Mapping[str, Any]:
    """What the writer binds, but for these."""
    return {name: binding for name, binding in OWN.items() if name not in names}


@pytest.mark.parametrize(
    "bindings",
    [
        OWN,
        {**OWN, QKV: parts((QKV, 0, 192))},
        {**OWN, QKV: parts((QKV, 0, 80), (QKV, 80, 192))},
        {**OWN, "layers/0/k": parts((QKV, 64, 128))},
        {**OWN, "layers/0/k": parts((QKV, 64, 80), (QKV, 80, 128))},
        {**OWN, "head": {"object": "norm"}, "another": {"object": QKV}},
        {**without(QKV), **VIEWS},
        {**without("norm"), "head": {"object": "norm"}},
    ],
    ids=[
        "own",
        "range",
        "two ranges",
        "rows",
        "rows in two parts",
        "alias",
        "views that tile",
        "alias alone",
    ],
)
def test_revision_3_is_compared_name_by_name(tmp_path: Path, bindings: Mapping[str, Any]):
    path = written(tmp_path / "a.ninfer", revision_3(bindings))
    _, findings = inventory(path, sound())
    (finding,) = findings  # nothing but that the contract is not stated for it
    assert finding.code == "inventory.revision_not_stated"
    assert "not_judged" not in finding.where


def test_what_canonical_asks_of_revision_3_is_said_to_be_unjudged(tmp_path: Path):
    """A nonzero gap is a rule of the canonical writer of revisions 1 and 2: here it stays what it always is."""
    content = bytearray(revision_3(OWN))
    artifact, _ = opened(written(tmp_path / "a.ninfer", bytes(content)))
    assert artifact is not None
    content[artifact.files[0].payload_offset + artifact.objects[0].bytes] = 1
    _, findings = inventory(written(tmp_path / "a.ninfer", bytes(content)), sound(), canonical=True)
    assert not findings.errors
    told, gap = findings
    assert (told.code, gap.code) == ("inventory.revision_not_stated", "structure.unreferenced_bytes")
    assert told.where["not_judged"] == ["order", "placement"]
    assert "canonical order and placement that were asked for are not judged" in told.message


@pytest.mark.parametrize(
    ("bindings", "code", "name"),
    [
        ({"layers/0/k": parts((QKV, 0, 64))}, "inventory.view_unbound", QKV),
        ({"layers/0/k": {"object": QKV}}, "inventory.view_unbound", QKV),
        ({"layers/0/k": parts(("layers/1/qkv", 64, 128))}, "inventory.view_unbound", QKV),
        ({"head": {"object": QKV}}, "inventory.alias_unbound", "norm"),
        ({"head": parts(("norm", 0, 8))}, "inventory.alias_unbound", "norm"),
    ],
    ids=["other rows", "whole parent", "other parent", "other object", "part of it"],
)
def test_roles_bound_otherwise_are_named(tmp_path: Path, bindings: Mapping[str, Any], code: str, name: str):
    path = written(tmp_path / "a.ninfer", revision_3({**OWN, **bindings}))
    _, findings = inventory(path, sound())
    (finding,) = findings.errors
    assert (finding.code, finding.object) == (code, name)


OTHER = "layers/1/qkv"  # of the same shape and format


@pytest.mark.parametrize(
    ("bindings", "names"),
    [
        ({**OWN, QKV: {"object": OTHER}, OTHER: {"object": QKV}}, [QKV, OTHER]),
        (without("norm"), ["norm"]),
        ({}, list(OWN)),
        ({**OWN, "norm": parts(("norm", 0, 10))}, ["norm"]),
        ({**OWN, "norm": parts(("norm", 8, 16), ("norm", 0, 8))}, ["norm"]),
        ({**without(QKV), **VIEWS, "layers/0/k": parts((QKV, 64, 127))}, [QKV]),
        ({**without(QKV), "layers/0/q": VIEWS["layers/0/q"], "layers/0/v": VIEWS["layers/0/v"]}, [QKV]),
        ({**without(QKV), "another": {"object": QKV}}, [QKV]),
    ],
    ids=["exchanged", "removed", "none", "a part", "halves", "a wrong view", "a gap", "a name of its maker"],
)
def test_tensors_bound_otherwise_are_named(tmp_path: Path, bindings: Mapping[str, Any], names: list[str]):
    path = written(tmp_path / "a.ninfer", revision_3(bindings))
    _, findings = inventory(path, sound())
    unbound = [finding for finding in findings.errors if finding.code == "inventory.object_unbound"]
    assert [finding.object for finding in unbound] == names
    for finding in unbound:
        assert finding.definition.rule == "B7"
        assert finding.where == {"path": f"bindings.{finding.object}"}
        assert finding.expected.startswith("elements [0, ")
        found = finding.found != "no binding of its name, nor of roles that hold all of it"
        assert found == (finding.object in bindings)


def test_an_identity_that_is_claimed_otherwise_fails_nothing(tmp_path: Path):
    content = revision_3(
        OWN, provenance={"identity": {"model_id": "other", "weights_id": "first"}, "by": "x"}
    )
    _, findings = inventory(written(tmp_path / "a.ninfer", content), sound())
    assert not findings.errors
    (claim,) = [finding for finding in findings if finding.code == "inventory.claim_differs"]
    assert claim.where == {"path": "provenance.identity.model_id"}
    assert (claim.expected, claim.found) == ('"own"', '"other"')


def test_a_role_of_a_missing_object_is_not_judged(tmp_path: Path):
    path = written(
        tmp_path / "a.ninfer", revision_3({**without("norm"), "head": {"object": QKV}}, renamed="other")
    )
    _, findings = inventory(path, sound())
    assert set(codes(findings)) == {"inventory.object_missing", "inventory.object_unexpected"}


@pytest.mark.parametrize("length", [1, 7, 8, 9, 17])
def test_every_nonzero_byte_of_a_gap_is_seen(tmp_path: Path, length: int):
    """Eight bytes are looked at together: each place in and after the last eight counts."""
    content = mini_hybrid_artifact.artifact()
    for place in range(length):
        extra = bytearray(length)
        extra[place:] = b"\x80" * (length - place)
        artifact, _ = opened(written(tmp_path / "a.ninfer", content + bytes(extra)))
        assert artifact is not None
        (finding,) = scan(artifact, Pool(1))
        assert finding.code == "structure.unreferenced_bytes"
        assert (finding.where["offset"], finding.count) == (len(content) + place, length - place)
