"""Recipes put together with checkpoints: what a plan holds, and everything that stops one."""

import hashlib
from typing import Any

import numpy as np
import pytest

from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, FP32
from ninfer_core.io import MemorySource
from ninfer_core.recipes import ResourcePlan, TensorPlan, bind
from ninfer_core.sources import Kind, open_checkpoint
from tests.recipes.build import RULE, W, bound, document, folder, recipe_of, source, tensor
from tests.sources.build import MemoryFiles, file, index

WORDS = np.arange(8, dtype="<u4") + 0x3F800000
STORED = ("F32", [2, 4], WORDS.tobytes())
BASE = folder({"w": STORED})
TEXT = b"hello\n"


def resource(**members: Any) -> dict[str, Any]:
    return {"object": "r", "from": "base", "file": "r.txt", "encode": "copy_bytes", **members}


def test_a_plan_in_writer_order() -> None:
    rules = [
        {"object": "h/{l}", "each": {"l": "s"}, "value": tensor("w{l}", [2], "BF16"), "format": "BF16", "encode": "copy_words"},
        {**RULE, "value": {"op": "concat_rows", "of": [{"op": "rows", "begin": 1, "end": 2, "of": W}, W]}},
    ]  # fmt: skip
    base = folder(
        {"w": STORED, "w0": ("BF16", [2], b"abcd"), "w7": ("BF16", [2], b"efgh"), "x": ("U8", [1], b"x")},
        **{"r.txt": TEXT},
    )
    inputs = {"notes": {"kind": "file", "bytes": 2}}
    resources = [resource(), {"object": "n", "input": "notes", "encode": "copy_bytes"}]
    whole = document(rules, sets={"s": [7, 0]}, resources=resources, inputs=inputs)
    codes, plan, _ = bound(whole, {"base": base}, {"notes": b"ok"})
    assert codes == ["source.tensor_unaccounted"]
    assert plan is not None
    assert [made.name for made in plan.objects] == ["r", "n", "h/7", "h/0", "w"]
    r, n, h7, _, w = plan.objects
    assert isinstance(r, ResourcePlan)
    assert (r.role, r.file, r.source.size) == ("base", "r.txt", len(TEXT))
    assert isinstance(n, ResourcePlan)
    assert (n.role, n.file, n.source.size) == (None, "notes", 2)
    assert isinstance(h7, TensorPlan)
    assert (h7.fmt, h7.shape, h7.encode, h7.sources) == (BF16, (2,), "copy_words", (("base", "w7"),))
    assert h7.value.read(0, 2).tobytes() == b"efgh"
    assert isinstance(w, TensorPlan)
    assert (w.fmt, w.shape, w.sources, w.layout.name) == (FP32, (3, 4), (("base", "w"),), "contiguous-le-v1")
    assert np.array_equal(w.value.read(0, 12), np.concatenate([WORDS[4:], WORDS]))
    assert plan.unused_sources == {"base": ("x",)}
    assert list(plan.checkpoints) == ["base"]


@pytest.mark.parametrize(
    ("base", "codes"),
    [
        (folder({}), ["source.tensor_missing"]),
        (folder({"w": ("F32", [8], WORDS.tobytes())}), ["source.shape_mismatch"]),
        (folder({"w": ("I32", [2, 4], WORDS.tobytes())}), ["source.dtype_mismatch"]),
        (folder({"w": ("U8", [32], WORDS.tobytes())}), ["source.shape_mismatch", "source.dtype_mismatch"]),
        (MemoryFiles(), ["source.file_missing"]),
        (MemoryFiles.of({"model.safetensors": b"\xff" * 20}), ["structure.header_past_end"]),
    ],
)
def test_a_checkpoint_that_does_not_fit(base: MemoryFiles, codes: list[str]) -> None:
    assert bound(document(), {"base": base})[0] == codes


def test_every_missing_tensor_is_named_with_its_object() -> None:
    rules = [{**RULE, "object": "o{l}", "each": {"l": "s"}, "value": {**W, "name": "t{l}"}}]
    _, _, findings = bound(document(rules, sets={"s": [0, 1, 2]}), {"base": folder({"t1": STORED})})
    assert [(f.object, f.where["tensor"], f.where["rule"]) for f in findings] == [
        ("o0", "t0", "$.rules[0]"),
        ("o2", "t2", "$.rules[0]"),
    ]


def test_exact_tensor_names() -> None:
    base = folder({"w": STORED, "x": ("U8", [1], b"x"), "y": ("U8", [1], b"y")})
    exact = document(sources={"base": source(exact_tensor_names=True)})
    codes, _, findings = bound(exact, {"base": base})
    assert codes == ["source.tensor_unexpected"] * 2
    assert [finding.where["tensor"] for finding in findings] == ["x", "y"]
    assert bound(exact, {"base": BASE})[0] == []


def test_roles_must_pair_up() -> None:
    codes, _, findings = bound(document(), {"bsae": BASE})
    assert codes == ["recipe.role_missing", "recipe.role_unknown"]
    assert [finding.where["role"] for finding in findings] == ["base", "bsae"]


def test_inputs_must_pair_up() -> None:
    whole = document(inputs={"a": {"kind": "file"}})
    assert bound(whole, {"base": BASE}, {"b": b""})[0] == ["recipe.input_missing", "recipe.input_unknown"]


PIN = {"bytes": len(TEXT), "sha256": hashlib.sha256(TEXT).hexdigest()}


@pytest.mark.parametrize(
    ("stored", "codes"),
    [
        (TEXT, []),
        (b"hello\r\n", ["source.file_size_mismatch"]),
        (b"HELLO\n", ["source.file_digest_mismatch"]),
        (b"", ["source.file_empty"]),
        (None, ["source.file_missing"]),
        (b"version https://git-lfs.github.com/spec/v1\nsize 6\n", ["structure.pointer_stub"]),
    ],
)
def test_pinned_resources(stored: bytes | None, codes: list[str]) -> None:
    others = {} if stored is None else {"r.txt": stored}
    whole = document(resources=[resource(**PIN)])
    assert bound(whole, {"base": folder({"w": STORED}, **others)})[0] == codes


def test_pinned_inputs_are_compared_even_when_nothing_reads_them() -> None:
    whole = document(inputs={"a": {"kind": "file", **PIN}})
    assert bound(whole, {"base": BASE}, {"a": TEXT})[0] == []
    assert bound(whole, {"base": BASE}, {"a": b"HELLO\n"})[0] == ["source.file_digest_mismatch"]


def test_resources_of_a_missing_role_or_input_are_not_reported_twice() -> None:
    resources = [resource(), {"object": "n", "input": "a", "encode": "copy_bytes"}]
    whole = document(resources=resources, inputs={"a": {"kind": "file"}})
    assert bound(whole, {})[0] == ["recipe.role_missing", "recipe.input_missing"]


INDEX = "model.safetensors.index.json"
SHARDED = {INDEX: index({"w": "1.safetensors"}), "1.safetensors": file({"w": STORED})}


def sharded(**members: Any) -> dict[str, Any]:
    whole = {**source(kind="safetensors-index", index=INDEX), **members}
    del whole["file"]
    return document(sources={"base": whole})


@pytest.mark.parametrize(
    ("members", "more", "codes"),
    [
        ({"shards": 1, "shard_set_equals_index": True}, {}, []),
        ({"shards": 2}, {}, ["source.shard_count"]),
        ({}, {"2.safetensors": b""}, ["structure.shard_unlisted"]),
        ({"shard_set_equals_index": True}, {"2.safetensors": b""}, ["structure.shard_unlisted", "source.shard_unexpected"]),
    ],
)  # fmt: skip
def test_shards(members: dict[str, Any], more: dict[str, bytes], codes: list[str]) -> None:
    assert bound(sharded(**members), {"base": MemoryFiles.of({**SHARDED, **more})})[0] == codes


def test_a_checkpoint_that_is_already_open() -> None:
    findings = Findings()
    checkpoint = open_checkpoint(BASE, Kind.FILE, "model.safetensors", findings)
    assert checkpoint is not None
    plan = bind(recipe_of(document()), {"base": checkpoint}, {}, findings)
    assert plan is not None
    assert plan.checkpoints["base"] is checkpoint
    assert bind(recipe_of(sharded()), {"base": checkpoint}, {}, findings) is None
    assert [finding.code for finding in findings] == ["source.file_missing"]


def test_inputs_are_read_only_where_pinned() -> None:
    class Unreadable(MemorySource):
        def read_into(self, buffer: Any, offset: int) -> None:
            raise AssertionError("nobody asked for this")

    plan = bind(
        recipe_of(document(inputs={"a": {"kind": "file"}})),
        {"base": BASE},
        {"a": Unreadable("a", TEXT)},
        Findings(),
    )
    assert plan is not None
