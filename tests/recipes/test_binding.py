"""The five recipes of real models bound to checkpoints of their names, shapes and settings that hold no weights."""

import json
from math import prod
from typing import Any

import pytest

from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, MemorySource
from ninfer_core.recipes import Bundle, Plan, Recipe, TensorPlan, bind, parse_recipe
from ninfer_core.recipes.crosschecks import EqualSourceTensors
from ninfer_core.recipes.expansion import required_tensors
from ninfer_core.recipes.preflight import source_tasks
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.targets import recipe_ids, registered_recipe
from ninfer_core.verify.pool import Pool
from tests.sources.build import index

REAL = [recipe_id for recipe_id in recipe_ids() if recipe_id.startswith("qwen")]
ONE = b"\x00\x00\x80\x3f"  # as F32 words these are all 1.0
SPECIAL = {"248044": {"special": True}, "248076": {"special": True}, "5": {"special": False}}


class Hollow:
    """A file of a header and of as many bytes after it as it states, which nobody stores."""

    def __init__(self, name: str, head: bytes, size: int) -> None:
        self.name, self.size = name, size
        self._head = head

    def read_into(self, buffer: Any, offset: int) -> None:
        with memoryview(buffer).cast("B") as view:
            assert offset + len(view) <= self.size
            assert len(view) <= 1 << 24, "a whole tensor was read"
            kept = self._head[offset : offset + len(view)]
            begin = max(0, offset - len(self._head)) % 4
            view[: len(kept)] = kept
            rest = len(view) - len(kept)
            view[len(kept) :] = (ONE * (rest // 4 + 2))[begin : begin + rest]

    def changed(self) -> None:
        return None


class Folder:
    """Files by name."""

    def __init__(self, sources: dict[str, ByteSource]) -> None:
        self.sources = sources

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.sources)

    def __contains__(self, name: object) -> bool:
        return name in self.sources

    def open(self, name: str) -> ByteSource:
        return self.sources[name]


def shard(name: str, tensors: dict[str, tuple[str, tuple[int, ...]]]) -> Hollow:
    header, at = {}, 0
    for tensor, (dtype, shape) in tensors.items():
        length = prod(shape) * DTYPES[dtype].bits // 8
        header[tensor] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return Hollow(name, head, len(head) + at)


def config(source: Any, sets: Any) -> bytes:
    """The smallest `config.json` that is as demanded."""
    root: dict[str, Any] = {}

    def at(path: str) -> dict[str, Any]:
        value = root
        for step in path.split(".") if path else ():
            value = value.setdefault(step, {})
        return value

    for path, members in source.get("config_requires", {}).items():
        for name in members.get("__exact_members__", ()):
            at(path).setdefault(name, {})
        at(path).update({name: value for name, value in members.items() if name != "__exact_members__"})
    if "layer_types" in source:
        layers = source["layer_types"]
        path, _, name = layers["member"].rpartition(".")
        chosen = set(sets[layers["set"]])
        count = at(path)["num_hidden_layers"]
        at(path)[name] = [layers["in_set" if n in chosen else "otherwise"] for n in range(count)]
    return json.dumps(root).encode()


def checkpoint(recipe: Recipe, stated: Any, role: str) -> Folder:
    source = stated["sources"][role]
    tensors = {name: (leaf.dtype, leaf.shape) for name, leaf in required_tensors(recipe.rules)[role].items()}
    for check in recipe.cross_checks:
        if isinstance(check, EqualSourceTensors) and role in (check.left, check.right):
            other = check.left if role == check.right else check.right
            known = required_tensors(recipe.rules)
            for name in check.names:
                leaf = known[role].get(name) or known[other][name]
                tensors.setdefault(name, (leaf.dtype, leaf.shape))
    files: dict[str, ByteSource] = {
        "config.json": MemorySource("config.json", config(source, stated["sets"]))
    }
    for side in source.get("side_files", ()):
        files[side["file"]] = MemorySource(side["file"], json.dumps(side["members"]).encode())
    for resource in stated["resources"]:
        text = json.dumps({"added_tokens_decoder": SPECIAL}).encode()
        files[resource["file"]] = MemorySource(resource["file"], text)
    if "file" in source:
        files[source["file"]] = shard(source["file"], tensors)
        return Folder(files)
    count = source.get("shards", 3)
    names = [f"model-{number:05d}.safetensors" for number in range(count)]
    places = {tensor: names[number % count] for number, tensor in enumerate(tensors)}
    for name in names:
        files[name] = shard(name, {t: tensors[t] for t, place in places.items() if place == name})
    files[source["index"]] = MemorySource(source["index"], index(places))
    return Folder(files)


def bound(recipe_id: str) -> tuple[list[str], Plan]:
    text = registered_recipe(recipe_id)
    assert text is not None
    stated = json.loads(text)
    for pinned in (*stated["resources"], *stated["inputs"].values()):
        del pinned["bytes"], pinned["sha256"]
    findings = Findings()
    recipe = parse_recipe(json.dumps(stated).encode(), findings)
    assert recipe is not None
    roles = {role: checkpoint(recipe, stated, role) for role in stated["sources"]}
    ranking = recipe.inputs["ranking"].ranking
    assert ranking is not None
    counts = b"".join((n % 97).to_bytes(8, "little") for n in range(ranking.row_width))
    inputs = {"ranking": MemorySource("ranking", counts * ranking.rows)}
    plan = bind(recipe, roles, inputs, findings)
    assert plan is not None, [finding.message for finding in findings][:3]
    return [finding.code for finding in findings], plan


@pytest.mark.parametrize("recipe_id", REAL)
def test_a_real_recipe_binds(recipe_id: str) -> None:
    codes, plan = bound(recipe_id)
    # Of the 1,199 tensors that upstream's preflight asks for, only those that are read were made here, and none of
    # those that another recipe says are left out.
    few = {"qwen3_6_27b_nvfp4-v1": "source.preflight_count", "qwen3_8_27b_nvfp4-v1": "source.unused_absent"}
    assert codes == ([few[recipe_id]] if recipe_id in few else [])
    target = plan.target
    assert target is not None
    assert [item.name for item in plan.objects] == [item.name for item in target.objects]
    for item, wanted in zip(plan.objects, target.objects, strict=True):
        if isinstance(item, TensorPlan):
            assert (item.shape, item.fmt) == (wanted.shape, wanted.format)
            assert item.value.shape == item.shape
            assert isinstance(item.value, Bundle) == (item.encode or "").startswith(("copy_nv", "copy_fp8"))
    states = {use.state for uses in plan.accounting.values() for use in uses.values()}
    assert states <= {"used", "excluded"}
    tasks = source_tasks(plan, Pool(1))
    assert len(tasks) == (117 if recipe_id == "qwen3_6_27b_nvfp4-v1" else 0)
    assert [finding.code for task in tasks[:1] for finding in task.run()] == []


def test_rows_of_a_large_head_are_read_one_by_one() -> None:
    _, plan = bound("qwen3_6_27b-v2")
    by_name = {item.name: item for item in plan.objects}
    ids, draft = by_name["text/draft_head_token_ids"], by_name["text/draft_head"]
    assert isinstance(ids, TensorPlan)
    assert isinstance(draft, TensorPlan)
    assert not isinstance(ids.value, Bundle)
    assert not isinstance(draft.value, Bundle)
    words = ids.value.read(0, 131_072)
    assert len(set(words.tolist())) == 131_072
    assert {248044, 248076} <= set(words.tolist())
    assert draft.value.read(131_071 * 5120, 131_072 * 5120).size == 5120  # `Hollow` refuses to be read whole
