"""The synthetic model end to end: converted to the published bytes, verified whole, and each of the 43 edits found.

What an edit must show is worked out here from the edit, the directory and the text of the layouts alone.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.findings import Finding, Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.opening import open_path
from ninfer_core.recipes import bind, parse_recipe
from ninfer_core.targets import registered, registered_recipe
from ninfer_core.verify import CHECKS, asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import ObjectResult, Report
from ninfer_core.verify.sample import Sample
from service.cli import app
from tests import mini_hybrid
from tests.mini_hybrid_artifact import artifact
from tests.shards import run_by_shards

RECIPE_ID = "mini_hybrid_mixed-v1"
MUTATIONS = mini_hybrid.mutations()


@pytest.fixture(scope="module")
def against(mini_checkpoint: mini_hybrid.MiniHybrid) -> Iterator[Against]:
    """Target, recipe and all sources, canonical."""
    (target,) = registered("mini-hybrid", "mixed")
    document = registered_recipe(RECIPE_ID)
    assert document is not None
    findings = Findings()
    with ExitStack() as stack:
        roles = {
            role: stack.enter_context(DiskFiles(folder)) for role, folder in mini_checkpoint.roles.items()
        }
        inputs = {name: DiskFile(file) for name, file in mini_checkpoint.inputs.items()}
        for file in inputs.values():
            stack.callback(file.close)
        recipe = parse_recipe(document, findings, target=target)
        assert recipe is not None
        plan = bind(recipe, roles, inputs, findings)
        assert plan is not None, list(findings)
        yield Against(plan, findings, recipe=recipe, targets=(target,), canonical=True)


def judge(path: Path, against: Against) -> Report:
    with open_path(path) as opened:
        return verify(opened, asked(CHECKS), against)


def rules(report: Report, severity: str) -> set[str | None]:
    return {item.definition.rule for item in report.findings if item.severity == severity}


def options(checkpoint: mini_hybrid.MiniHybrid) -> list[str]:
    """All sources, as the command line takes them."""
    sources = [word for role, folder in checkpoint.roles.items() for word in ("--source", f"{role}={folder}")]
    return sources + [
        word for name, file in checkpoint.inputs.items() for word in ("--input", f"{name}={file}")
    ]


def test_it_converts_to_the_published_bytes(mini_checkpoint, tmp_path, capsys):
    out = tmp_path / "mini.ninfer"
    assert app.run(["convert", *options(mini_checkpoint), "--recipe", RECIPE_ID, "--out", str(out)]) == 0
    assert sha256(out.read_bytes()).hexdigest() == mini_hybrid.document("golden")["artifact"]["sha256"]
    assert "WRITTEN" in capsys.readouterr().out


def test_it_passes_with_every_check_full(against, tmp_path):
    path = tmp_path / "mini.ninfer"
    path.write_bytes(artifact())
    report = judge(path, against)
    assert (report.verdict, report.findings) == ("passed", ())
    assert {(check.outcome, check.coverage) for check in report.checks} == {("passed", "full")}
    assert [check.name for check in report.checks] == list(CHECKS)
    digests = {item.name: item.sha256 for item in report.objects}
    golden = {entry["name"]: entry["sha256"] for entry in mini_hybrid.document("golden")["objects"]}
    assert digests == golden
    assert {item.evidence for item in report.objects} == {"copied-exact", "derived-exact"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["id"])
def test_each_edit_gives_its_rules_with_object_and_place(against, tmp_path, mutation):
    path = tmp_path / "edited.ninfer"
    path.write_bytes(mini_hybrid.mutate(artifact(), mutation))
    report = judge(path, against)
    assert report.verdict == "failed"
    assert rules(report, "error") == set(mutation["expect"])
    assert rules(report, "advisory") == set(mutation.get("expect_advisory", ()))
    assert {item.object for item in report.findings} == objects(mutation)
    for finding in report.findings:
        place = expected_place(mutation, finding)
        assert {key: finding.where.get(key) for key in place} == place, finding
    outcomes = {check.name: check.outcome for check in report.checks}
    if any(rule.startswith("A") for rule in mutation["expect"]):
        assert outcomes["structure"] == "failed"
        assert {outcomes[name] for name in ("inventory", "relations", "parity")} == {"not_checked"}
    failed = {item.name for item in report.objects if item.failed}
    assert failed == {name for name in objects(mutation) if name in {item.name for item in report.objects}}


def objects(mutation: Mapping[str, Any]) -> set[str | None]:
    """The objects that the edits of a mutation touch; None where they touch the file."""
    root, _ = mini_hybrid.directory(artifact())
    names: set[str | None] = set()
    for edit in mutation["edits"]:
        match edit["kind"]:
            case "extra_member":
                names.add(root["objects"][edit["index"]]["name"])
            case "directory":
                names.add(edit["set"].get("name", edit["object"]))
            case "drop_last":
                names.add(root["objects"][-1]["name"])
            case "swap_payload":
                names.update(edit["objects"])
            case "payload" | "swap_rows":
                names.add(edit["object"])
            case _:
                names.add(None)
    return names


def expected_place(mutation: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    """What `where` of a finding must say; the first edit is the first place."""
    edit = mutation["edits"][0]
    root, start = mini_hybrid.directory(artifact())
    match edit["kind"], finding.code:
        case "file", _:
            return {"offset": edit["at"]}
        case "append", _:
            return {"offset": len(artifact()), "bytes": len(bytes.fromhex(edit["hex"]))}
        case "extra_member", _:
            return {"member": edit["member"], "path": f"objects[{edit['index']}]"}
        case "identity", _:
            return {"differs": list(edit["set"])}
        case "directory", "inventory.object_differs":
            return {"differs": list(edit["set"])}
        case "directory", "structure.object_name_duplicate":
            names = [entry["name"] for entry in root["objects"]]
            return {"positions": [names.index(edit["set"]["name"]), names.index(edit["object"])]}
        case "directory", "structure.object_overlap":
            return {"offset": edit["set"]["offset"]}
        case ("directory", _) | ("drop_last", _):
            return {}
        case "swap_payload", _:
            return {"index": 0}
        case "swap_rows", _:
            size = edit["row_bytes"] // 2
            first = content(root, start, edit["object"])[edit["rows"][0] * 2 * size :]
            other = content(root, start, edit["object"])[edit["rows"][1] * 2 * size :]
            lane = next(at for at in range(size) if first[2 * at : 2 * at + 2] != other[2 * at : 2 * at + 2])
            return {"index": edit["rows"][0] * size + lane, "rows_differ": edit["rows"]}
    entry = next(one for one in root["objects"] if one["name"] == edit["object"])
    if entry["kind"] == "resource":
        return {"file": "chat_template.jinja"} if finding.code == "parity.resource_mismatch" else {}
    return payload_place(entry, edit, finding, content(root, start, edit["object"]))


def content(root: Mapping[str, Any], start: int, name: str) -> bytes:
    entry = next(one for one in root["objects"] if one["name"] == name)
    return artifact()[start + entry["offset"] : start + entry["offset"] + entry["bytes"]]


def payload_place(
    entry: Mapping[str, Any], edit: Mapping[str, Any], finding: Finding, stored: bytes
) -> dict[str, Any]:
    old, new = bytes.fromhex(edit["old"]), bytes.fromhex(edit["new"])
    changed = next(at for at in range(len(old)) if old[at] != new[at])
    place = PLACES[entry["format"]](entry, edit["at"] + changed, old[changed] ^ new[changed])
    at = {"byte": place.pop("byte")}
    match finding.code:
        case "restrictions.canonical_group_shape":
            n, k = entry["shape"]
            per_row = -(-k // 128) * 128 // 32  # M14 is W8
            scale = up(n * per_row * 32) + 2 * (place["row"] * per_row + place["group"])
            return {"row": place["row"], "group": place["group"], "byte": scale, "largest": 128}
        case "restrictions.canonical_fp8_row_shape":
            n, k = entry["shape"]
            return {"row": place["row"], "byte": up(n * k) + 2 * place["row"]}
        case "values.zero_scale_nonzero_code":
            group = place["row"] * 4 + place["group"]  # M17 is Q4 with K = 256
            codes = [
                nibble for byte in stored[32 * group : 32 * group + 32] for nibble in (byte & 15, byte >> 4)
            ]
            lane = next(lane for lane, code in enumerate(codes) if code)
            return {**place, "lane": lane, "byte": 32 * group + lane // 2}
        case "restrictions.unique":
            ids = [int.from_bytes(stored[4 * one : 4 * one + 4], "little") for one in range(len(stored) // 4)]
            again = ids.index(int.from_bytes(new, "little"))
            first, second = sorted((again, place["index"]))
            return {"first": first, "index": second, "byte": 4 * second}
        case "relations.special_id_missing":
            return {"id": int.from_bytes(old, "little"), "resource": "frontend/tokenizer_config.json"}
        case "parity.divisor_mismatch":
            return {}
    return place if finding.check == "parity" and place else {**place, **at}


def up(size: int, unit: int = 256) -> int:
    return -(-size // unit) * unit


def direct(entry: Mapping[str, Any], at: int, _: int) -> dict[str, Any]:
    size = 2 if entry["format"] == "BF16" else 4
    return {"index": at // size, "byte": at // size * size}


def grouped(entry: Mapping[str, Any], at: int, bits: int) -> dict[str, Any]:
    """Row-split planes: base codes, high bits, scales, each at a multiple of 256."""
    width, size = {"Q4": (0, 64), "Q5": (8, 64), "Q6": (16, 64), "W8": (0, 32)}[entry["format"][:2]]
    n, k = entry["shape"]
    per_row = up(k, 128) // size
    groups = n * per_row
    scales = up(groups * 32) + up(groups * width)
    if at < groups * 32:
        row, group = divmod(at // 32, per_row)
        lane = at % 32 if size == 32 else at % 32 * 2 + (bits & 15 == 0)
        return {"row": row, "group": group, "lane": lane, "column": group * size + lane, "byte": at}
    if at >= scales:
        row, group = divmod((at - scales) // 2, per_row)
        return {"row": row, "group": group, "byte": scales + (at - scales) // 2 * 2}
    return {"byte": at}  # no mutation touches the high plane, so this lies between two


def rows_of_fp8(entry: Mapping[str, Any], at: int, _: int) -> dict[str, Any]:
    n, k = entry["shape"]
    if at < n * k:
        return {"row": at // k, "column": at % k, "byte": at}
    row = (at - up(n * k)) // 2
    return {"row": row, "byte": up(n * k) + 2 * row}


def nvfp4(entry: Mapping[str, Any], at: int, bits: int) -> dict[str, Any]:
    """Codes, swizzled scales, divisor."""
    n, k = entry["shape"]
    if at < n * k // 2:
        column = at % (k // 2) * 2 + (bits & 15 == 0)
        return {"row": at // (k // 2), "column": column, "group": column // 16, "byte": at}
    inside = at - up(n * k // 2)
    if inside >= n * k // 16:
        return {"byte": up(n * k // 2) + n * k // 16}
    tile, inside = divmod(inside, 512)
    row = tile // (k // 64) * 128 + inside % 16 // 4 * 32 + inside // 16
    return {"row": row, "group": tile % (k // 64) * 4 + inside % 4, "byte": at}


PLACES = {
    "BF16": direct,
    "FP32": direct,
    "I32": direct,
    "Q4G64_F16S": grouped,
    "Q5G64_F16S": grouped,
    "W8G32_F16S": grouped,
    "FP8_E4M3FN_ROW_BF16S": rows_of_fp8,
    "NVFP4": nvfp4,
}


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_of_any_seed_sees_rows_exchanged_over_a_joint(against, tmp_path, seed):
    """M42 exchanges the last query row and the first key row; one row in a thousand would hardly meet them."""
    mutation = MUTATIONS[41]
    path = tmp_path / "edited.ninfer"
    path.write_bytes(mini_hybrid.mutate(artifact(), mutation))
    report = judge(path, replace(against, sample=Sample(0.001, seed)))
    assert rules(report, "error") == {"F1"}
    assert {item.object for item in report.findings} == objects(mutation)
    path.write_bytes(artifact())
    clean = judge(path, replace(against, sample=Sample(0.001, seed)))
    assert clean.findings == ()
    sampled = [item for item in clean.objects if item.coverage == "sampled"]
    assert {item.name for item in sampled} == {item.name for item in clean.objects if is_large(item)}
    assert {item.evidence for item in sampled} == {None}


@pytest.mark.parametrize("number", [None, 14, 24, 37, 42])
def test_shards_and_their_order_change_no_digit(against, tmp_path, number):
    """Every check, with a sample, by shards that hand on nothing but JSON: the report is the same."""
    path = tmp_path / "mini.ninfer"
    path.write_bytes(artifact() if number is None else mini_hybrid.mutate(artifact(), MUTATIONS[number - 1]))
    sampled = replace(against, sample=Sample(0.1, 2))
    whole = judge(path, sampled).as_json()
    assert run_by_shards(path, sampled, CHECKS, shard_bytes=1 << 18).as_json() == whole


def is_large(item: ObjectResult) -> bool:
    """Whether an object is larger than what is compared whole."""
    return item.kind == "tensor" and (item.bytes or 0) > 1 << 16


@pytest.mark.parametrize("number", [14, 28, 36, 37, 39, 42, 43])
def test_the_command_line_says_the_same(mini_checkpoint, tmp_path, capsys, number):
    mutation = MUTATIONS[number - 1]
    path = tmp_path / "edited.ninfer"
    path.write_bytes(mini_hybrid.mutate(artifact(), mutation))
    named = ["--target", mini_hybrid.IDENTITY, "--canonical", "--recipe", RECIPE_ID]
    assert app.run(["verify", str(path), *named, *options(mini_checkpoint), "--json", "-"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {"error": set(), "advisory": set()}
    for finding in report["findings"]:
        found[finding["severity"]].add(finding["rule"])
    assert found == {
        "error": set(mutation["expect"]),
        "advisory": set(mutation.get("expect_advisory", ())),
    }


WITHOUT_SOURCE = {
    "M14": {"C2", "C4"},
    "M28": {"C7"},
    "M34": {"C8"},
    "M37": {"C8"},
    "M39": {"D1"},
    "M40": set(),
    "M43": {"C9"},
}


@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if one["id"] in WITHOUT_SOURCE], ids=lambda one: one["id"]
)
def test_what_a_recipe_alone_sees(tmp_path, mutation, capsys):
    """Restrictions and relations need no source: they find many a bad encoder or misplaced row without one."""
    path = tmp_path / "edited.ninfer"
    path.write_bytes(mini_hybrid.mutate(artifact(), mutation))
    code = app.run(["verify", str(path), "--recipe", RECIPE_ID, "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    expected = WITHOUT_SOURCE[mutation["id"]]
    assert {item["rule"] for item in report["findings"]} == expected
    assert code == (1 if expected else 0)
    asked_for = {check["name"] for check in report["checks"] if check["outcome"] != "not_asked"}
    assert asked_for == {"structure", "layout", "values", "statistics", "restrictions", "relations"}
