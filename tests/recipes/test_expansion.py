"""The registered recipes expand to the hashes that their authors state, and bind to a checkpoint of their shapes."""

import hashlib
import json
from typing import Any

import pytest

from ninfer_core.convert.outline import outline
from ninfer_core.findings import Findings
from ninfer_core.recipes import Recipe, claims, parse_recipe, relations
from ninfer_core.recipes.expansion import compare_checks, expanded, recipe_sha256, source_requirements
from ninfer_core.targets import TARGETS, recipe_ids, registered_recipe
from tests.recipes.build import document, recipe_of, tensor

HEADS = ("text/output_head", "text/draft_head", "text/draft_head_token_ids")


def registered(recipe_id: str) -> tuple[Recipe, dict[str, Any]]:
    text = registered_recipe(recipe_id)
    assert text is not None
    findings = Findings()
    recipe = parse_recipe(text, findings)
    assert not list(findings)
    assert recipe is not None
    return recipe, json.loads(text)


def test_there_are_six() -> None:
    assert len(recipe_ids()) == 6


@pytest.mark.parametrize("recipe_id", recipe_ids())
def test_hashes_are_those_of_the_author(recipe_id: str) -> None:
    recipe, stated = registered(recipe_id)
    checks = stated["checks"]
    assert recipe_sha256(recipe) == checks["recipe_sha256"]
    assert len(list(expanded(recipe))) == checks["expanded_rules"]
    ours = source_requirements(recipe)
    assert {
        role: {"tensors": one.tensors, "dtypes": dict(one.dtypes), "sha256": one.sha256}
        for role, one in ours.items()
    } == checks["source_requirements"]
    findings = Findings()
    compare_checks(recipe, findings)
    assert not list(findings)


@pytest.mark.parametrize("recipe_id", recipe_ids())
def test_the_target_is_filled_in_its_order(recipe_id: str) -> None:
    recipe, _ = registered(recipe_id)
    target = recipe.target
    assert target is not None
    outlined = outline(recipe, None)
    assert [item.name for item in outlined.objects] == [item.name for item in target.objects]
    published = target.document["checks"]["directory"]["2"]["file_bytes"]
    assert outlined.file_bytes[2] == published


@pytest.mark.parametrize("recipe_id", recipe_ids())
def test_relations_and_claims(recipe_id: str) -> None:
    recipe, stated = registered(recipe_id)
    found = relations(recipe)
    (ids,) = found.id_lists
    assert (ids.object, ids.special_ids_from) == (HEADS[2], "frontend/tokenizer_config.json")
    assert ids.top_ids == (tuple(stated["inputs"]["ranking"].get("top_ids", ())) or None)
    # Only where the head is encoded from the very matrix that the draft head gathers from.
    same_source = recipe_id not in ("mini_hybrid_mixed-v1", "qwen3_8_27b_nvfp4-v1")
    assert [(pair.head, pair.draft, pair.ids) for pair in found.head_pairs] == [HEADS] * same_source
    covering = claims(recipe)
    assert {claim.rule for claim in covering[HEADS[2]]} == {"int_range", "unique", "contains_special_ids"}
    assert {claim.rule for claim in covering[HEADS[1]]} == {
        "source_finite",
        "group_scale_fits_f16",
        "canonical_group_shape",
    }


def test_every_target_has_its_recipe() -> None:
    assert sorted(str(target.recipe_id) for target in TARGETS) == sorted(recipe_ids())


def test_other_checks_are_an_advisory_each() -> None:
    stated = {
        "expanded_rules": 2,
        "recipe_sha256": "0" * 64,
        "encodes": {"copy_words": 2},
        "source_requirements": {"base": {"tensors": 1, "dtypes": {"F32": 1}, "sha256": "1" * 64}},
    }
    findings = Findings()
    compare_checks(recipe_of(document(checks=stated)), findings)
    assert [(f.code, f.where["member"], f.severity) for f in findings] == [
        ("recipe.checks_differ", member, "advisory")
        for member in ("expanded_rules", "recipe_sha256", "encodes", "source_requirements")
    ]


def test_counts_of_source_tensors_are_compared_beside_their_hash() -> None:
    lines = hashlib.sha256(b"w|2,4|F32\n").hexdigest()
    sound = {"tensors": 1, "dtypes": {"F32": 1}, "sha256": lines}
    for wrong, found in (
        ({}, []),
        ({"tensors": 2}, ["1"]),
        ({"dtypes": {"F32": 1, "U8": 1}}, ["{'F32': 1}"]),
    ):
        findings = Findings()
        checks = {"source_requirements": {"base": {**sound, **wrong}}}
        compare_checks(recipe_of(document(checks=checks)), findings)
        assert [(f.code, f.where["role"], f.found) for f in findings] == [
            ("recipe.checks_differ", "base", one) for one in found
        ]


def test_a_tree_is_hashed_as_sorted_lines() -> None:
    rules = [
        {"object": "o{l}", "each": {"l": "s"}, "format": "BF16", "encode": "copy_words", "value": tensor("t{l}", [2], "BF16")}
    ]  # fmt: skip
    recipe = recipe_of(document(rules, sets={"s": [10, 9]}))
    tree = '{"dtype":"BF16","from":"base","name":"t%s","op":"tensor","shape":[2]}'
    lines = sorted(f"o{number}|copy_words|{tree % number}\n" for number in ("9", "10"))
    assert recipe_sha256(recipe) == hashlib.sha256("".join(lines).encode()).hexdigest()
