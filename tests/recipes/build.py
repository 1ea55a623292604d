"""Recipe documents and checkpoints in memory; nothing here is checked."""

import json
from typing import Any

from ninfer_core.findings import Findings
from ninfer_core.io import MemorySource
from ninfer_core.recipes import Plan, Recipe, bind, parse_recipe
from tests.sources.build import MemoryFiles, file

Json = Any

W = {"op": "tensor", "from": "base", "name": "w", "shape": [2, 4], "dtype": "F32"}
RULE = {"object": "w", "value": W, "format": "FP32", "encode": "copy_words"}


def tensor(name: str, shape: list[int], dtype: str) -> Json:
    """The operation `tensor` of role `base`."""
    return {"op": "tensor", "from": "base", "name": name, "shape": shape, "dtype": dtype}


def source(**members: Json) -> Json:
    """A source of one file."""
    return {
        "repository": "synthetic/tiny",
        "revision": "1",
        "license": "none",
        "kind": "safetensors-file",
        "file": "model.safetensors",
        **members,
    }


def document(rules: Json = None, **members: Json) -> Json:
    """A document of one source, with members replaced; None takes a member out."""
    whole = {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "tiny", "weights_id": "test"},
        "recipe_id": "tiny-v1",
        "sources": {"base": source()},
        "rules": [RULE] if rules is None else rules,
        **members,
    }
    return {name: member for name, member in whole.items() if member is not None}


def parsed(whole: Json) -> tuple[list[tuple[str, str]], Recipe | None, Findings]:
    """(code without `recipe.`, path) of every finding, and the recipe."""
    findings = Findings()
    text = whole if isinstance(whole, bytes) else json.dumps(whole).encode()
    recipe = parse_recipe(text, findings)
    assert (recipe is None) == bool(findings.errors)
    return [(f.code.removeprefix("recipe."), f.where["path"]) for f in findings], recipe, findings


def recipe_of(whole: Json) -> Recipe:
    """A recipe that has no fault."""
    faults, recipe, _ = parsed(whole)
    assert recipe is not None, faults
    return recipe


def folder(tensors: dict[str, tuple[str, list[int], bytes]], **others: bytes) -> MemoryFiles:
    """A folder with `model.safetensors` and other files."""
    return MemoryFiles.of({"model.safetensors": file(tensors), **others})


def bound(
    whole: Json, roles: dict[str, MemoryFiles], inputs: dict[str, bytes] | None = None
) -> tuple[list[str], Plan | None, Findings]:
    """The codes of binding, and the plan."""
    findings = Findings()
    given = {name: MemorySource(name, content) for name, content in (inputs or {}).items()}
    plan = bind(recipe_of(whole), roles, given, findings)
    assert (plan is None) == bool(findings.errors)
    return [finding.code for finding in findings], plan, findings
