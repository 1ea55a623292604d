"""What a file of revision 3 says beside its objects, against what the recipe has `convert` say there."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.convert import convert
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan, bind, parse_recipe
from ninfer_core.targets import registered, registered_recipe
from ninfer_core.verify import CHECKS, asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import Report
from tests import mini_hybrid

Root = dict[str, Any]
Edit = Callable[[Root], object]
NORMS = "text/layers/0/input_norm", "text/layers/1/input_norm"
RESOURCES = {
    "tokenizer.json": "frontend/tokenizer.json",
    "tokenizer_config.json": "frontend/tokenizer_config.json",
}
COMPONENTS = {"text": {"config": {"hidden": 256, "rope": {"base": 1e4}}, "resources": RESOURCES}}
METADATA = {"name": "mini"}


@pytest.fixture(scope="module")
def plan(mini_checkpoint: mini_hybrid.MiniHybrid) -> Iterator[Plan]:
    """The recipe of the synthetic model, with components and metadata."""
    stated = registered_recipe("mini_hybrid_mixed-v1")
    assert stated is not None
    document = json.loads(stated) | {"components": COMPONENTS, "metadata": METADATA}
    del document["checks"]
    (target,) = registered("mini-hybrid", "mixed")
    findings = Findings()
    with ExitStack() as stack:
        roles = {
            role: stack.enter_context(DiskFiles(folder)) for role, folder in mini_checkpoint.roles.items()
        }
        inputs = {name: DiskFile(file) for name, file in mini_checkpoint.inputs.items()}
        for file in inputs.values():
            stack.callback(file.close)
        recipe = parse_recipe(json.dumps(document).encode(), findings, target=target)
        assert recipe is not None, list(findings)
        bound = bind(recipe, roles, inputs, findings)
        assert bound is not None, list(findings)
        yield bound


@pytest.fixture(scope="module")
def converted(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What `convert` writes of it."""
    path = tmp_path_factory.mktemp("stated") / "a.ninfer"
    assert convert(plan, path, revision=3).written
    return path.read_bytes()


def edited(content: bytes, edit: Edit) -> bytes:
    """The file with another directory of the same padded length; the payload stays."""
    length = int.from_bytes(content[8:16], "little")
    root = json.loads(content[32 : 32 + length])
    start = -(-(32 + length) // 4096) * 4096
    edit(root)
    text = json.dumps(root, separators=(",", ":"), ensure_ascii=False).encode()
    assert len(text) <= start - 32
    text = text.ljust(max(len(text), start - 4096 + 1 - 32))
    head = content[:8] + len(text).to_bytes(8, "little") + content[16:32] + text
    return head.ljust(start, b"\0") + content[start:]


def judged(content: bytes, plan: Plan, folder: Path, *, with_target: bool, checks: str = "all") -> Report:
    path = folder / "b.ninfer"
    path.write_bytes(content)
    targets = registered("mini-hybrid", "mixed") if with_target else ()
    names = [name for name in CHECKS if with_target or name != "inventory"]
    against = Against(plan, Findings(), recipe=plan.recipe, targets=targets)
    with open_path(path) as opened:
        return verify(opened, asked(names if checks == "all" else [checks]), against)


def errors(report: Report) -> list[tuple[str, str]]:
    found = [item for item in report.findings if item.severity == "error"]
    return [(item.code, item.where["path"]) for item in found]


def advisories(report: Report) -> set[str]:
    return {item.code for item in report.findings if item.severity == "advisory"}


@pytest.mark.parametrize("with_target", [True, False])
def test_what_convert_writes_is_what_the_recipe_says(converted, plan, tmp_path, with_target):
    report = judged(converted, plan, tmp_path, with_target=with_target)
    assert report.verdict == "passed"
    assert advisories(report) == ({"inventory.revision_not_stated"} if with_target else set())


def exchange(root: Root) -> None:
    bindings = root["bindings"]
    bindings[NORMS[0]], bindings[NORMS[1]] = bindings[NORMS[1]], bindings[NORMS[0]]


def cut(root: Root) -> None:
    root["bindings"][NORMS[0]] = {"parts": [{"object": NORMS[0], "range": [0, 10]}]}


BOUND: dict[str, tuple[Edit, list[str]]] = {
    "exchanged": (exchange, [*NORMS]),
    "removed": (lambda root: root["bindings"].pop(NORMS[0]), [NORMS[0]]),
    "cut": (cut, [NORMS[0]]),
}


@pytest.mark.parametrize(("edit", "names"), BOUND.values(), ids=BOUND)
@pytest.mark.parametrize("with_target", [True, False])
def test_a_binding_that_is_not_the_recipes_is_named_once(converted, plan, tmp_path, edit, names, with_target):
    content = edited(converted, edit)
    report = judged(content, plan, tmp_path, with_target=with_target)
    code = "inventory.object_unbound" if with_target else "parity.section_differs"
    told = [(item.code, item.where["path"]) for item in report.findings if item.code == code]
    assert sorted(told) == [(code, f"bindings.{name}") for name in names]
    # Without a target nobody says that an object must be bound: another reader may come to it by a view.
    open_to_readers = not with_target and edit is BOUND["removed"][0]
    assert report.verdict == ("passed" if open_to_readers else "failed")
    assert bool(errors(report)) != open_to_readers


@pytest.mark.parametrize("with_target", [True, False])
def test_no_binding_at_all(converted, plan, tmp_path, with_target):
    report = judged(
        edited(converted, lambda root: root["bindings"].clear()), plan, tmp_path, with_target=with_target
    )
    code = "inventory.object_unbound" if with_target else "parity.section_differs"
    count = report.unlisted.get(code, 0) + sum(item.code == code for item in report.findings)
    tensors = [item for item in plan.objects if hasattr(item, "fmt")]
    assert count == len(tensors)
    assert report.verdict == ("failed" if with_target else "passed")


def resources(root: Root) -> None:
    stated = root["components"]["text"]["resources"]
    one, other = RESOURCES
    stated[one], stated[other] = stated[other], stated[one]


SAID: dict[str, tuple[Edit, list[str]]] = {
    "resources exchanged": (resources, [f"components.text.resources.{name}" for name in RESOURCES]),
    "config changed": (
        lambda root: root["components"]["text"]["config"]["rope"].update(base=1e6),
        ["components.text.config.rope.base"],
    ),
    "another component": (
        lambda root: root["components"].update(mtp={"config": {}}),
        ["components.mtp"],
    ),
    "metadata changed": (lambda root: root["metadata"].update(name="evil"), ["metadata.name"]),
    "metadata removed": (lambda root: root.pop("metadata"), ["metadata"]),
}
MORE: dict[str, tuple[Edit, list[str]]] = {
    "a use": (lambda root: root["uses"].append({"parameter": NORMS[0], "input": "x"}), ["uses"]),
    "a binding more": (
        lambda root: root["bindings"].update(own={"object": NORMS[0]}),
        ["bindings.own"],
    ),
}


def differing(report: Report, severity: str) -> set[str]:
    return {
        item.where["path"]
        for item in report.findings
        if item.code == "parity.section_differs" and item.severity == severity
    }


@pytest.mark.parametrize(("edit", "paths"), MORE.values(), ids=MORE)
def test_what_no_recipe_states_is_told_and_fails_nothing(converted, plan, tmp_path, edit, paths):
    report = judged(edited(converted, edit), plan, tmp_path, with_target=False)
    assert (report.verdict, errors(report)) == ("passed", [])
    assert differing(report, "advisory") == set(paths)


@pytest.mark.parametrize(("edit", "paths"), SAID.values(), ids=SAID)
@pytest.mark.parametrize("with_target", [True, False])
def test_what_else_a_reader_goes_by(converted, plan, tmp_path, edit, paths, with_target):
    report = judged(edited(converted, edit), plan, tmp_path, with_target=with_target)
    assert sorted(errors(report)) == [("parity.section_differs", path) for path in sorted(paths)]
    assert report.verdict == "failed"


def test_a_view_that_is_bound_as_the_target_says_is_no_difference(converted, plan, tmp_path):
    """Only where the inventory judged it: a recipe alone knows no views."""
    (target,) = registered("mini-hybrid", "mixed")
    view = target.views[0]
    shape = target[view.parent].shape
    assert shape is not None
    width = shape[1]
    rows = {"parts": [{"object": view.parent, "range": [view.begin * width, view.end * width]}]}
    content = edited(converted, lambda root: root["bindings"].update({view.name: rows}))
    assert judged(content, plan, tmp_path, with_target=True).verdict == "passed"
    report = judged(content, plan, tmp_path, with_target=False)
    assert differing(report, "advisory") == {f"bindings.{view.name}"}


def test_another_spelling_of_the_same_binding_is_none(converted, plan, tmp_path):
    def spell(root: Root) -> None:
        (shape,) = [item["shape"] for item in root["objects"] if item["id"] == NORMS[0]]
        root["bindings"][NORMS[0]] = {"parts": [{"object": NORMS[0], "range": [0, shape[0]]}]}

    for with_target in (True, False):
        assert judged(edited(converted, spell), plan, tmp_path, with_target=with_target).verdict == "passed"


def claim(root: Root) -> None:
    provenance = root["provenance"]
    provenance["identity"]["model_id"] = "evil"
    provenance["recipe"]["digest"] = "sha256:" + "0" * 64
    provenance["own"] = "free"
    del provenance["sources"]


@pytest.mark.parametrize("with_target", [True, False])
def test_claims_that_contradict_are_told_and_decide_nothing(converted, plan, tmp_path, with_target):
    report = judged(edited(converted, claim), plan, tmp_path, with_target=with_target)
    assert report.verdict == "passed"
    told = {item.where["path"]: item for item in report.findings if item.code.endswith(".claim_differs")}
    assert set(told) == {"provenance.identity.model_id", "provenance.recipe.digest"}
    assert told["provenance.recipe.digest"].code == "parity.claim_differs"
    assert told["provenance.recipe.digest"].expected == json.dumps(plan.recipe.digest)
    own = "inventory" if with_target else "parity"
    assert told["provenance.identity.model_id"].code == f"{own}.claim_differs"
    silent = judged(
        edited(converted, lambda root: root.pop("provenance")), plan, tmp_path, with_target=with_target
    )
    assert silent.verdict == "passed"
    assert not {code for code in advisories(silent) if code.endswith(".claim_differs")}


def test_without_parity_nothing_is_compared_with_the_recipe(converted, plan, tmp_path):
    report = judged(edited(converted, resources), plan, tmp_path, with_target=True, checks="inventory")
    assert report.verdict == "passed"


def test_a_recipe_that_says_nothing_leaves_open_what_others_say(converted, plan, tmp_path):
    """Metadata that nobody stated and another config are told: `convert` writes neither."""
    silent = replace(plan, recipe=replace(plan.recipe, components=None, metadata=None))
    report = judged(converted, silent, tmp_path, with_target=True)
    assert (report.verdict, errors(report)) == ("passed", [])
    assert differing(report, "advisory") == {
        "components.text.config.hidden",
        "components.text.config.rope",
        "components.text.resources",
        "metadata",
    }
