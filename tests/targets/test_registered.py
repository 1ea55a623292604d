"""The registered targets: shipped as handed over, expanded to every hash they state, found by identity."""

import hashlib
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from ninfer_core.targets import TARGETS, Target, recipe_ids, registered, registered_recipe
from tests.targets import sparse

REAL = [target for target in TARGETS if not target.document["facts"].get("synthetic")]
each_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.identity)


def sha256(lines: list[str]) -> str:
    """As the page of the targets hashes lines."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def inventory_lines(target: Target) -> list[str]:
    """Written once more, without the product's own spelling of a line."""
    lines = []
    for item in target.objects:
        if item.shape is not None and item.format is not None and item.layout is not None:
            dims = ",".join(str(size) for size in item.shape)
            lines.append(f"{item.name}|tensor|{dims}|{item.format.name}|{item.layout.name}")
        else:
            lines.append(f"{item.name}|resource|||{item.encoding}")
    return lines


def test_the_package_ships_six_targets_with_their_recipes():
    assert len(TARGETS) == 6
    assert len(REAL) == 5
    assert {target.recipe_id for target in TARGETS} == set(recipe_ids())


def test_every_file_has_the_digest_of_its_origin_page():
    folder = files("ninfer_core.targets") / "data"
    page = (folder / "ORIGIN.md").read_text()
    stated = dict(re.findall(r"\| `([^`]+\.json)` \| \d+ \| `([0-9a-f]{64})` \|", page))
    found = {
        entry.name: hashlib.sha256(entry.read_bytes()).hexdigest()
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    assert found == stated


@each_target
def test_inventory_hashes(target: Target):
    checks, lines = target.document["checks"], inventory_lines(target)
    assert sha256(sorted(lines, key=str.encode)) == checks["inventory_sha256"] == target.inventory_sha256
    assert sha256(lines) == checks["ordered_inventory_sha256"]


@each_target
def test_encoded_sizes_and_totals(target: Target):
    document = target.document
    sizes = [f"{item.name}|{item.bytes}" for item in target.objects if item.kind == "tensor"]
    assert sha256(sorted(sizes, key=str.encode)) == document["checks"]["tensor_bytes_sha256"]
    assert target.tensor_bytes == document["totals"]["tensor_bytes"]
    assert len(target.objects) == document["totals"]["objects"]
    lengths = sparse.resource_bytes(target)
    for name, counts in document["components"]["counts"].items():
        own = [item for item in target.objects if target.component(item.name) == name]
        assert len(own) == counts["objects"]
        assert sum(item.bytes or lengths[item.name] for item in own) == counts["bytes"]


@each_target
def test_offsets(target: Target):
    placed = sparse.entries(target.objects, sparse.resource_bytes(target))
    lines = [f"{entry['name']}|{entry['offset']}|{entry['bytes']}" for entry in placed]
    assert sha256(lines) == target.document["checks"]["offsets_sha256"]


@each_target
def test_views_and_aliases(target: Target):
    checks = target.document["checks"]
    lines = [f"{view.name}|{view.parent}|{view.begin}|{view.end}" for view in target.views]
    assert sha256(sorted(lines, key=str.encode)) == checks["views"]["sha256"]
    assert len(target.views) == checks["views"]["bindings"]
    assert len(target.aliases) == checks["aliases"]["bindings"]


@each_target
def test_directories(target: Target):
    stated = target.document["checks"]["directory"]
    assert {int(revision) for revision in stated} == set(target.revisions)
    for revision, expected in stated.items():
        built = sparse.directory(target, int(revision))
        assert {
            "json_bytes": len(built.text),
            "payload_offset": built.payload_offset,
            "file_bytes": built.file_bytes,
            "sha256": built.sha256,
        } == expected


def test_expert_banks_are_found_by_their_names():
    (target,) = registered("qwen3.6-35b-a3b", "groupwise-int")
    assert len(target.expert_views) == 2 * (40 + 1)  # every text layer and the draft layer
    bank = next(view for view in target.expert_views if view.parent == "text/layers/39/moe/routed_gate_up")
    assert (bank.experts, bank.stride, bank.parts) == (256, 1024, (("gate", 0, 512), ("up", 512, 1024)))


def test_a_file_that_names_only_its_model_is_groupwise_int():
    assert registered("qwen3.6-27b", None) == registered("qwen3.6-27b", "groupwise-int")
    assert [target.identity for target in registered("qwen3.6-27b", None)] == ["qwen3.6-27b/groupwise-int"]


@pytest.mark.parametrize("model_id", ["qwen3.6", "../qwen3.6-27b", "QWEN3.6-27B", ""])
def test_no_identity_is_guessed(model_id: str):
    assert registered(model_id, "groupwise-int") == ()
    assert registered_recipe(model_id) is None


def test_nothing_is_read_and_nothing_compiled_before_somebody_asks():
    script = (
        "import sys, builtins\n"
        "import ninfer_core.targets as t, ninfer_core.targets.registry as r\n"
        "assert r._names.cache_info().currsize == 0\n"
        "assert len(list(t.TARGETS)) == 6\n"
        "print(*[name for name in sys.modules if name.startswith(('numba', 'llvmlite', 'ninfer_core.kernels'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
