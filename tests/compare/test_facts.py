"""What two directories say beyond their objects: what decides, what is only told, and what no revision can state."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.compare.facts import MOST
from ninfer_core.compare.summary import summary
from service.cli import app
from tests.build import ninfer_file
from tests.compare.build import run, run_by_shards

Root = dict[str, Any]
PAYLOAD = np.arange(16, dtype="<f4").tobytes().ljust(256, b"\0") + np.arange(16, 32, dtype="<f4").tobytes()


def root_3(**members: Any) -> Root:
    """Two tensors of sixteen words each, bound as the writer binds them."""
    place = {"kind": "tensor", "shape": [4, 4], "format": "fp32", "layout": "contiguous_le_v1"}
    return {
        "components": {"text": {"config": {"hidden": 4, "layers": [1, 2]}}},
        "objects": [
            {"id": "a", **place, "offset": 0, "bytes": 64},
            {"id": "b", **place, "offset": 256, "bytes": 64},
        ],
        "bindings": {"a": {"object": "a"}, "b": {"object": "b"}},
        "uses": [],
        "files": [{"path": None, "payload_bytes": len(PAYLOAD)}],
        "metadata": {"name": "one"},
        "provenance": {"recipe": {"digest": "x"}},
    } | members


def root_2(model_id: str = "m", weights_id: str = "w") -> Root:
    place = {"kind": "tensor", "shape": [4, 4], "format": "FP32", "layout": "contiguous-le-v1"}
    return {
        "identity": {"model_id": model_id, "weights_id": weights_id},
        "objects": [
            {"name": "a", **place, "offset": 0, "bytes": 64},
            {"name": "b", **place, "offset": 256, "bytes": 64},
        ],
    }


def root_1(model_id: str = "m") -> Root:
    return {"model_id": model_id, "objects": root_2()["objects"]}


def pair(folder: Path, a: tuple[int, Root], b: tuple[int, Root]) -> tuple[Path, Path]:
    paths = folder / "a.ninfer", folder / "b.ninfer"
    for path, (revision, root) in zip(paths, (a, b), strict=True):
        path.write_bytes(ninfer_file(revision, root, PAYLOAD))
    return paths


def parts(*ranges: tuple[str, int, int]) -> Any:
    return {"parts": [{"object": name, "range": [begin, end]} for name, begin, end in ranges]}


SWAPPED = {"a": {"object": "b"}, "b": {"object": "a"}}
DECIDING: dict[str, tuple[tuple[int, Root], tuple[int, Root], list[str]]] = {
    "model_id": ((2, root_2()), (2, root_2("other")), ["identity.model_id"]),
    "weights_id": ((2, root_2()), (2, root_2("m", "other")), ["identity.weights_id"]),
    "model_id of 1": ((1, root_1()), (2, root_2("other")), ["identity.model_id"]),
    "swapped": ((3, root_3()), (3, root_3(bindings=SWAPPED)), ["bindings.a", "bindings.b"]),
    "removed": ((3, root_3()), (3, root_3(bindings={"b": {"object": "b"}})), ["bindings.a"]),
    "cut": (
        (3, root_3()),
        (3, root_3(bindings={"a": {"object": "a"}, "b": parts(("b", 0, 10))})),
        ["bindings.b"],
    ),
    "config": (
        (3, root_3()),
        (3, root_3(components={"text": {"config": {"hidden": True, "layers": [1, 3]}}})),
        ["components.text.config.hidden", "components.text.config.layers[1]"],
    ),
    "metadata": ((3, root_3()), (3, root_3(metadata={"name": "two"})), ["metadata.name"]),
    "uses": ((3, root_3()), (3, root_3(uses=[{"parameter": "a", "input": "x"}])), ["uses"]),
}


@pytest.mark.parametrize(("a", "b", "names"), DECIDING.values(), ids=DECIDING)
def test_what_a_reader_goes_by_decides(
    tmp_path: Path, a: tuple[int, Root], b: tuple[int, Root], names: list[str]
):
    paths = pair(tmp_path, a, b)
    found = run(*paths)
    assert {item.status for item in found.objects} == {"identical"}
    assert [fact.name for fact in found.facts.listed if fact.decides] == names
    assert found.verdict == "different"
    assert found.a.content_root == found.b.content_root is not None
    assert run_by_shards(*paths, 64).as_json() == found.as_json()
    section = names[0].partition(".")[0]
    verb = "differs" if section == "identity" else "differ"
    assert summary(found) == f"the {section} of the two {verb}; every one of 2 objects is identical"


TOLD: dict[str, tuple[tuple[int, Root], tuple[int, Root], list[str]]] = {
    "nothing": ((3, root_3()), (3, root_3()), []),
    "claims": (
        (3, root_3()),
        (3, root_3(provenance={"recipe": {"digest": "y"}, "by": None})),
        ["provenance.recipe.digest", "provenance.by"],
    ),
    "revision": ((2, root_2()), (3, root_3()), ["revision"]),
    "weights_id of 1": ((1, root_1()), (2, root_2("m", "any")), ["revision"]),
    "another spelling": (
        (3, root_3()),
        (3, root_3(bindings={"b": parts(("b", 0, 7), ("b", 7, 16)), "a": parts(("a", 0, 16))})),
        [],
    ),
    "order of members": ((3, root_3()), (3, dict(reversed(root_3().items()))), []),
    "a number": (
        (3, root_3()),
        (3, root_3(components={"text": {"config": {"hidden": 4.0, "layers": [1, 2]}}})),
        [],
    ),
}


@pytest.mark.parametrize(("a", "b", "names"), TOLD.values(), ids=TOLD)
def test_what_is_told_and_decides_nothing(
    tmp_path: Path, a: tuple[int, Root], b: tuple[int, Root], names: list[str]
):
    found = run(*pair(tmp_path, a, b))
    assert [fact.name for fact in found.facts.listed] == names
    assert not any(fact.decides for fact in found.facts.listed)
    assert found.verdict == "identical"


def test_values_are_told_as_json_text(tmp_path: Path):
    found = run(*pair(tmp_path, (3, root_3()), (3, root_3(bindings=SWAPPED, provenance={"recipe": None}))))
    assert found.as_json()["facts"] == [
        {"name": "bindings.a", "a": '{"object": "a"}', "b": '{"object": "b"}', "decides": True},
        {"name": "bindings.b", "a": '{"object": "b"}', "b": '{"object": "a"}', "decides": True},
        {"name": "provenance.recipe", "a": '{"digest": "x"}', "b": "null", "decides": False},
    ]
    assert found.as_json()["unlisted_facts"] == 0
    assert json.loads("".join(found.json_pieces())) == found.as_json()


def test_many_facts_are_counted_and_those_that_decide_come_first(tmp_path: Path):
    claims = {str(number): number for number in range(MOST + 10)}
    found = run(*pair(tmp_path, (3, root_3()), (3, root_3(bindings=SWAPPED, provenance=claims))))
    assert len(found.facts.listed) == MOST
    assert found.facts.unlisted == 2 + 1 + MOST + 10 - MOST
    assert [fact.decides for fact in found.facts.listed] == [True, True] + [False] * (MOST - 2)


BROKEN: dict[str, Callable[[Root], object]] = {
    "bindings are no object": lambda root: root.update(bindings=[1]),
    "a binding is no object": lambda root: root["bindings"].update(a=7),
    "a part without a range": lambda root: root["bindings"].update(a={"parts": [{"object": "a"}]}),
    "no components": lambda root: root.pop("components"),
    "no bindings": lambda root: root.pop("bindings"),
}


@pytest.mark.parametrize("break_", BROKEN.values(), ids=BROKEN)
def test_sections_at_fault_are_compared_as_they_are(tmp_path: Path, break_: Callable[[Root], object]):
    broken = root_3()
    break_(broken)
    found = run(*pair(tmp_path, (3, root_3()), (3, broken)))
    assert found.b.errors
    assert found.facts.deciding
    assert found.verdict == "different"
    same = run(*pair(tmp_path, (3, broken), (3, broken)))
    assert not same.facts.listed


def test_without_a_directory_no_fact_is_known(tmp_path: Path):
    a, b = pair(tmp_path, (3, root_3()), (3, root_3()))
    b.write_bytes(b"NINFER\0\3")
    found = run(a, b)
    assert not found.facts.listed
    assert found.verdict == "incomplete"


def test_the_command_says_it_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    paths = pair(
        tmp_path, (3, root_3()), (3, root_3(bindings=SWAPPED, provenance={"recipe": {"digest": "y"}}))
    )
    assert app.run(["diff", *map(str, paths)]) == 1
    out = capsys.readouterr().out
    assert "What the directories say beside the objects" in out
    assert '  bindings.a  {"object": "a"} → {"object": "b"}\n' in out
    assert '  provenance.recipe.digest  "x" → "y"  (decides nothing)\n' in out
    assert out.rstrip().endswith("the bindings of the two differ; every one of 2 objects is identical.")
    assert app.run(["diff", *map(str, paths), "--worst", "1"]) == 1
    assert "… and 2 differences more; --json FILE has the first 1,000" in capsys.readouterr().out
    assert app.run(["diff", *map(str, paths), "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [fact["name"] for fact in document["facts"]] == [
        "bindings.a",
        "bindings.b",
        "provenance.recipe.digest",
    ]


def test_the_revision_alone_exits_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    paths = pair(tmp_path, (2, root_2()), (3, root_3()))
    assert app.run(["diff", *map(str, paths)]) == 0
    assert "  revision  2 → 3  (decides nothing)\n" in capsys.readouterr().out
