"""`recipe check` and `convert --dry-run`: what a recipe would make, and every fault of it, before any work."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.targets import TARGETS
from service.cli import app
from tests import mini_hybrid
from tests.cli import build
from tests.cli.test_verify import strict
from tests.vectors.load import HERE

CASES = HERE / "cases"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = app.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    """Exit code and the one document on standard output."""
    code, out, _ = run(capsys, *arguments, "--json", "-")
    found = strict(out)
    assert found["schema"] == "ninfer-gate/recipe/1"
    return code, found


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.identity)
def test_every_registered_recipe_is_sound(target: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, "recipe", "check", target.recipe_id)
    assert (code, found["verdict"], found["bound"], found["findings"]) == (0, "sound", False, [])
    assert found["recipe"]["target_digest"] == target.digest
    assert found["recipe"]["expanded_sha256"] == found["recipe"]["stated_expanded_sha256"]
    by_name = {item["name"]: item for item in found["objects"]}
    assert list(by_name) == [item.name for item in target.objects]
    for item in target.objects:
        stated = by_name[item.name]
        assert stated["kind"] == item.kind
        if item.format is not None and item.shape is not None:
            assert (stated["format"], stated["shape"]) == (item.format.name, list(item.shape))
            assert stated["bytes"] == item.bytes
    assert found["totals"]["file_bytes"]["2"] == target.document["checks"]["directory"]["2"]["file_bytes"]


def test_a_listing_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "recipe", "check", "mini_hybrid_mixed-v1", "--limit", 40)
    assert code == 0
    line = next(line for line in out.splitlines() if "attention/query_key_gate_value" in line)
    assert "concat_rows[row_blocks tensor, tensor, row_blocks tensor, tensor]" in line
    assert "base:model.language_model.layers.1.self_attn.q_proj.weight" in line
    assert "copy_words" in line
    assert "… and 74 more objects" in out
    assert "revision 2   3,358,976 bytes" in out
    assert "no source was looked at" in out


def mini(tmp_path: Path) -> list[object]:
    built = mini_hybrid.checkpoint(tmp_path)
    roles = [part for role, folder in built.roles.items() for part in ("--checkpoint", f"{role}={folder}")]
    return [*roles, "--input", f"ranking={built.ranking}"]


def test_a_dry_run_binds_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = mini(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, found = document(capsys, "convert", "--dry-run", "--recipe", "mini_hybrid_mixed-v1", *sources)
    assert (code, found["verdict"], found["bound"]) == (0, "sound", True)
    assert found["accounting"]["quantized"] == {
        "total": 50,
        "used": 45,
        "excluded": 5,
        "unaccounted": 0,
        "shared": {},
        "excluded_tensors": found["accounting"]["quantized"]["excluded_tensors"],
        "unaccounted_tensors": [],
    }
    assert len(found["accounting"]["quantized"]["excluded_tensors"]) == 5
    assert sorted(tmp_path.rglob("*")) == before
    code, out, _ = run(capsys, "recipe", "check", "mini_hybrid_mixed-v1", *sources)
    assert code == 0
    assert "quantized: 50 tensors, 45 used, 5 excluded" in out
    assert out.splitlines()[-1] == "  recipe sound: its sources were looked at."
    code, out, _ = run(capsys, "convert", "--dry-run", "--recipe", "mini_hybrid_mixed-v1", *sources)
    assert out.splitlines()[-1] == "  recipe sound: its sources were looked at; nothing was written."


def test_sources_that_do_not_fit_were_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    build.safetensors(tmp_path / "empty" / "model.safetensors", {"b": np.zeros(8, np.float32)})
    path = stated(tmp_path)
    _, found = document(capsys, "recipe", "check", path, "--checkpoint", tmp_path / "empty")
    assert "any source" not in found["not_looked_at"]
    code, out, _ = run(capsys, "recipe", "check", path, "--checkpoint", tmp_path / "empty")
    assert code == 1
    assert out.splitlines()[-1] == "  recipe REFUSED: 1 error; its sources were looked at."


def test_what_the_author_states_and_restricts_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restrictions = [{"scope": {"format": "FP32"}, "rule": "stored_finite", "basis": "contract"}]
    path = stated(tmp_path, restrictions=restrictions)
    out = run(capsys, "recipe", "check", path, "--limit", 0)[1]
    assert "own checks   none stated" in out
    assert "restricted   1 object: stored_finite (contract) of format FP32" in out
    assert "encoder  moves" not in out  # no titles over nothing
    assert (
        "own checks   agree"
        in run(capsys, "recipe", "check", stated(tmp_path, checks={"expanded_rules": 2}))[1]
    )
    assert (
        "1 of them differs"
        in run(capsys, "recipe", "check", stated(tmp_path, checks={"expanded_rules": 3}))[1]
    )


def test_a_name_that_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build.safetensors(
        tmp_path / "model.safetensors",
        {"model.aa.weight": np.zeros((4, 64), np.float32), "b": np.zeros(8, np.float32)},
    )
    path = stated(tmp_path)
    text = path.read_text().replace('"name": "a"', '"name": "model.a.weight"')
    path.write_text(text)
    _, found = document(capsys, "recipe", "check", path, "--checkpoint", tmp_path)
    missing = next(item for item in found["findings"] if item["code"] == "source.tensor_missing")
    assert missing["where"]["near"] == "model.aa.weight"
    assert missing["message"].endswith('did you mean "model.aa.weight"?')


def layered(tmp_path: Path, name: str, shape: list[int]) -> Path:
    """A recipe whose one rule runs over three layers."""
    value = {"op": "tensor", "from": "base", "name": "l.{n}", "shape": shape, "dtype": "F32"}
    rule = {"object": name, "each": {"n": "layers"}, "value": value, "encode": "copy_words", "format": "FP32"}
    return stated(tmp_path, sets={"layers": [0, 1, 2]}, rules=[rule])


def test_one_fault_of_a_rule_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = {f"l.{n}": np.zeros((2, 4), np.float32) for n in range(3)}
    build.safetensors(tmp_path / "model.safetensors", tensors)
    path = layered(tmp_path, "l/{n}", [4, 2])
    _, found = document(capsys, "recipe", "check", path, "--checkpoint", tmp_path)
    (finding,) = found["findings"]
    assert (finding["code"], finding["count"]) == ("source.shape_mismatch", 3)
    assert finding["where"]["tensors"] == ["l.0", "l.1", "l.2"]
    assert (finding["expected"], finding["found"]) == ("[4, 2]", "[2, 4]")
    _, found = document(capsys, "recipe", "check", layered(tmp_path, "l/x", [2, 4]))
    (finding,) = found["findings"]
    assert (finding["code"], finding["object"]) == ("recipe.object_duplicate", "l/x")
    assert '"l/x" lacks the variable {n} of `each`' in finding["message"]
    assert finding["found"] == "3 objects of 1 name"


def test_a_document_of_the_other_kind_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schema": "ninfer-target/1"}')
    assert "`ninfer-gate targets check` reads" in run(capsys, "recipe", "check", path)[1]
    path.write_text('{"schema": "ninfer-recipe/1"}')
    assert "`ninfer-gate recipe check` reads" in run(capsys, "targets", "check", path)[1]


def test_a_dry_run_compares_what_two_roles_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = mini(tmp_path)
    (shard,) = (tmp_path / "quantized").glob("*.safetensors")
    content = bytearray(shard.read_bytes())
    length = int.from_bytes(content[:8], "little")
    name = "model.language_model.layers.1.self_attn.k_proj.weight"
    content[8 + length + json.loads(content[8 : 8 + length])[name]["data_offsets"][0] + 10] ^= 1
    shard.write_bytes(content)
    for command in (["convert", "--dry-run", "--recipe"], ["recipe", "check"]):
        code, found = document(capsys, *command, "mini_hybrid_mixed-v1", *sources)
        assert (code, found["verdict"], found["bound"]) == (1, "refused", True)
        (finding,) = found["findings"]
        assert (finding["code"], finding["where"]["tensor"]) == ("source.tensors_differ", name)


def test_what_only_a_conversion_sees_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, alone = document(capsys, "recipe", "check", "mini_hybrid_mixed-v1")
    _, found = document(capsys, "recipe", "check", "mini_hybrid_mixed-v1", *mini(tmp_path))
    assert alone["not_looked_at"] == ["any source", *found["not_looked_at"]]
    assert any("cast" in question for question in found["not_looked_at"])
    _, out, _ = run(capsys, "recipe", "check", "mini_hybrid_mixed-v1")
    assert "not seen     any source" in out


@pytest.mark.parametrize("taken", ["m.ninfer", "m.ninfer.provenance.json", "m.ninfer.part-0001"])
def test_a_dry_run_finds_taken_names(taken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    split = ["--revision", 3, "--max-file-bytes", 1_000_000]
    arguments = [
        "convert",
        "--recipe",
        "mini_hybrid_mixed-v1",
        *mini(tmp_path),
        "--out",
        tmp_path / "m.ninfer",
        *split,
    ]
    assert run(capsys, *arguments, "--dry-run")[0] == 0
    (tmp_path / taken).write_text("mine")
    for last in ([], ["--dry-run"]):
        code, _, err = run(capsys, *arguments, *last)
        assert code == 2
        assert f"{taken} exists" in err


def test_a_dry_run_knows_a_limit_without_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    split = ["--revision", 3, "--max-file-bytes", 1]
    arguments = [
        "convert",
        "--recipe",
        "mini_hybrid_mixed-v1",
        *mini(tmp_path),
        "--out",
        tmp_path / "m.ninfer",
        *split,
    ]
    assert [run(capsys, *arguments, *last)[0] for last in ([], ["--dry-run"])] == [2, 2]


def test_conversion_tells_its_accounting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_file = tmp_path / "m.ninfer"
    arguments = ["convert", "--recipe", "mini_hybrid_mixed-v1", *mini(tmp_path), "--out", out_file]
    code, out, _ = run(capsys, *arguments, "--json", "-")
    found = strict(out)
    assert (code, found["verdict"]) == (0, "written")
    assert found["accounting"]["base"]["used"] == 90
    ids = next(item for item in found["objects"] if item["name"] == "text/draft_head_token_ids")
    assert (ids["inputs"], ids["moves"]["op"]) == (["ranking"], "ranked_token_ids")


def test_a_sampled_report_says_what_its_figures_rest_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources, out_file = mini(tmp_path), tmp_path / "m.ninfer"
    recipe = ["--recipe", "mini_hybrid_mixed-v1"]
    assert run(capsys, "convert", *recipe, *sources, "--out", out_file)[0] == 0
    code, out, _ = run(capsys, "verify", out_file, *recipe, *sources, "--sample", "5%")
    assert code == 0
    evidence = next(line for line in out.splitlines() if line.startswith("  evidence"))
    assert "sampled, which is no evidence; of 114 objects" in evidence
    assert "compared with the source, on the sampled rows alone" in out


def stated(tmp_path: Path, **changes: Any) -> Path:
    """The recipe of a small checkpoint with changes to its root."""
    whole = build.recipe({"a": ((4, 64), "F32", "Q4G64_F16S"), "b": ((8,), "F32", "FP32")})
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({**whole, **changes}))
    return path


def test_every_misfit_is_listed_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Columns that no block of the format divides, for every tensor of three (case B71).
    tensors = {name: ((128, k), "F32", "BF16") for name, k in (("a", 288), ("b", 2688), ("c", 64))}
    whole = build.recipe(tensors)
    for rule in whole["rules"]:
        rule |= {"format": "NVFP4", "encode": "copy_nvfp4_words"}
        shape = rule["value"]["shape"]
        rule["value"] = {"op": "nvfp4_matrix", "from": "base", "prefix": rule["object"], "shape": shape}
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(whole))
    missing = tmp_path / "nowhere"
    missing.mkdir()
    code, found = document(capsys, "convert", "--dry-run", "--recipe", path, "--checkpoint", missing)
    assert (code, found["verdict"], found["objects"]) == (1, "refused", [])
    assert [(item["code"], item["object"]) for item in found["findings"]] == [
        ("recipe.shape_unsupported", "a")
    ]
    code, out, _ = run(capsys, "recipe", "check", path)
    assert code == 1
    assert "recipe REFUSED" in out


def test_a_foreign_producer_is_verified_and_not_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads(stated(tmp_path).read_text())
    whole["rules"][0] |= {"producer": {"name": "other", "version": "1"}}
    del whole["rules"][0]["encode"]
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(whole))
    code, found = document(capsys, "recipe", "check", path)
    assert (code, found["objects"][0]["foreign"], found["objects"][0]["encode"]) == (0, True, "other")
    code, found = document(capsys, "convert", "--dry-run", "--recipe", path)
    assert (code, [item["code"] for item in found["findings"]]) == (1, ["recipe.producer_foreign"])


def test_checks_of_the_author_that_differ_are_an_advisory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stated(tmp_path, checks={"expanded_rules": 3})
    code, out, _ = run(capsys, "recipe", "check", path)
    assert code == 0
    assert "expanded_rules is stated as 3" in out
    assert "1 advisory" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recipe", "check", "no-such-recipe"], "registered are"),
        (["recipe", "check", "mini_hybrid_mixed-v1", "--target", "auto"], "--target auto"),
        (["recipe", "check", "mini_hybrid_mixed-v1", "--target", "a/b"], "no registered target"),
        (["recipe", "check", "mini_hybrid_mixed-v1", "--input", "x=/"], "cannot"),
        (["convert", "--recipe", "mini_hybrid_mixed-v1", "--out", "/nowhere/x"], "--checkpoint"),
        (["convert", "--checkpoint", ".", "--out", "/nowhere/x"], "--recipe FILE is missing"),
        (["convert", "--checkpoint", ".", "--recipe", "mini_hybrid_mixed-v1"], "--out FILE is missing"),
    ],
)
def test_no_answer(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_another_target(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = document(capsys, "recipe", "check", "qwen3_8_27b-v1", "--target", "qwen3.6-27b/nvfp4")
    assert code == 1
    codes = {item["code"] for item in found["findings"]}
    assert {"recipe.object_not_in_target", "recipe.encoder_format"} <= codes


ACCOUNTING = {
    "embed": ((2, 2), "BF16", "BF16", "embed.weight"),
    "layer/0/w": ((2, 2), "BF16", "BF16", "layer.0.w"),
}


@pytest.mark.parametrize("exact", [True, False])
def test_a_source_tensor_that_vanishes(
    exact: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case B73: with exact names it is an error, else the report names it as unaccounted."""
    rules = [
        {
            "object": name,
            "value": {"op": "tensor", "from": "base", "name": tensor, "shape": list(shape), "dtype": dtype},
            "format": fmt,
            "encode": "copy_words",
        }
        for name, (shape, dtype, fmt, tensor) in ACCOUNTING.items()
    ]
    whole = build.recipe({})
    whole["sources"]["base"] |= {"file": "source.safetensors", "exact_tensor_names": exact}
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({**whole, "rules": rules}))
    arguments = ["recipe", "check", path, "--checkpoint", CASES / "accounting" / "source.safetensors"]
    code, found = document(capsys, *arguments)
    (finding,) = found["findings"]
    if exact:
        assert (code, finding["code"]) == (1, "source.tensor_unexpected")
        assert finding["where"]["tensor"] == "extra_head.w"
    else:
        assert (code, finding["code"], finding["severity"]) == (0, "source.tensor_unaccounted", "advisory")
        assert found["accounting"]["base"]["unaccounted_tensors"] == ["extra_head.w"]
        sources = ["--checkpoint", CASES / "accounting" / "source.safetensors"]
        out_file = tmp_path / "m.ninfer"
        code, out, _ = run(capsys, "convert", "--recipe", path, *sources, "--out", out_file, "--json", "-")
        assert (code, strict(out)["findings"]) == (0, [finding])
        record = json.loads((tmp_path / "m.ninfer.provenance.json").read_text())
        assert record["findings"] == [finding]
        out_file = tmp_path / "n.ninfer"
        code, out, _ = run(capsys, "convert", "--recipe", path, *sources, "--out", out_file)
        assert "source.tensor_unaccounted   advisory" in out
        assert "; 1 advisory." in out.splitlines()[-1]
