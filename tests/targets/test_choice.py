"""Which target an artifact is compared with."""

from pathlib import Path

import pytest

from ninfer_core.containers.directory import Artifact
from ninfer_core.targets import TARGETS, Target, artifact_inventory_sha256, choose
from tests import mini_hybrid, mini_hybrid_artifact
from tests.targets import sparse
from tests.targets.build import document, opened, sound
from tests.targets.test_inventory import revision_3


def artifact(path: Path) -> Artifact:
    """An artifact that has a directory."""
    found, _ = opened(path)
    assert found is not None
    return found


def of_target(folder: Path, target: Target, revision: int = 2, drop: int = 0) -> Artifact:
    """A file of a target, without its last objects."""
    lengths = {item.name: 7 for item in target.objects if item.kind == "resource"}
    listed = sparse.entries(target.objects, lengths)
    path = sparse.directory(target, revision, listed[: len(listed) - drop]).write(folder / "a.ninfer")
    return artifact(path)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.identity)
def test_auto_picks_by_identity(tmp_path: Path, target: Target):
    for revision in target.revisions:
        found = of_target(tmp_path, target, revision)
        assert choose(TARGETS, found).target is target
        assert artifact_inventory_sha256(found) == target.inventory_sha256


def test_an_unknown_identity_has_no_registered_target(tmp_path: Path):
    choice = choose(TARGETS, of_target(tmp_path, sound()))
    assert choice.target is None
    assert choice.reason.startswith("no registered target")
    assert "own" in choice.reason


def test_a_target_is_asked_for_by_name(tmp_path: Path):
    found = of_target(tmp_path, sound())
    assert choose(TARGETS, found, "mini-hybrid/mixed").target is TARGETS[0]
    choice = choose(TARGETS, found, "mini-hybrid/other")
    assert choice.target is None
    assert choice.reason.startswith("no registered target")


def test_of_several_with_one_identity_the_inventory_decides(tmp_path: Path):
    first = sound()
    second = sound(document(objects=document()["objects"][:-1], aliases=None))
    third = sound(document(facts={"a": 1}))
    found = of_target(tmp_path, second)
    choice = choose([first, second, third], found)
    assert choice.target is second
    assert choice.others == (first, third)
    neither = of_target(tmp_path, first, drop=2)
    assert choose([first, second], neither).target is first


def test_a_file_of_revision_1_is_groupwise_int_of_its_model(tmp_path: Path):
    own = sound(document(identity={"model_id": "own", "weights_id": "groupwise-int"}))
    found = of_target(tmp_path, sound(), revision=1)
    assert choose([sound(), own], found).target is own


def test_revision_3_is_known_by_its_inventory_alone(tmp_path: Path):
    path = tmp_path / "a.ninfer"
    path.write_bytes(revision_3({}))
    assert choose([*TARGETS, sound()], artifact(path)).target == sound()
    choice = choose(TARGETS, artifact(path))
    assert choice.target is None
    assert choice.reason.startswith("no registered target")


def test_a_broken_directory_has_no_inventory(tmp_path: Path):
    mutation = next(entry for entry in mini_hybrid.mutations() if entry["id"] == "M04")
    path = tmp_path / "a.ninfer"
    path.write_bytes(mini_hybrid.mutate(mini_hybrid_artifact.artifact(), mutation))
    found, findings = opened(path)
    assert findings.errors
    assert found is not None
    assert artifact_inventory_sha256(found) is None
    assert choose(TARGETS, found).target is TARGETS[0]  # the identity is still there to be read
