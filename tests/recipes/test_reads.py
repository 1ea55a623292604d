"""Every file that binding read takes part: opened once, recorded, and held to what it was."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.convert import convert
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.recipes import Plan, bind
from ninfer_core.recipes.plan import report_source_changes
from ninfer_core.sources.checkpoint import Kind, open_checkpoint
from tests.recipes.build import document, recipe_of, source
from tests.sources.build import MemoryFiles, file

Json = dict[str, Any]
RESOURCE = {"object": "r", "from": "base", "file": "r.txt", "encode": "copy_bytes"}
DEMANDS = {
    "config_requires": {"": {"a": 1}},
    "side_files": [{"file": "side.json", "members": {"b": 2}}],
}
FILES = ["config.json", "model.safetensors", "r.txt", "side.json"]


@pytest.fixture
def files(tmp_path: Path) -> DiskFiles:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(file({"w": ("F32", [2, 4], bytes(32))}))
    (folder / "config.json").write_text(json.dumps({"a": 1}))
    (folder / "side.json").write_text(json.dumps({"b": 2}))
    (folder / "r.txt").write_text("r")
    (folder / "unread.json").write_text("{}")
    return DiskFiles(folder)


def plan_of(files: DiskFiles, inputs: dict[str, Path] | None = None, opened: bool = False) -> Plan:
    given = {name: DiskFile(path) for name, path in (inputs or {}).items()}
    stated = {name: {"kind": "file"} for name in given}
    whole = document(sources={"base": source(**DEMANDS)}, resources=[RESOURCE], inputs=stated)
    findings = Findings()
    base: Any = files
    if opened:
        base = open_checkpoint(files, Kind.FILE, "model.safetensors", findings)
    plan = bind(recipe_of(whole), {"base": base}, given, findings)
    assert plan is not None, list(findings)
    return plan


def test_what_was_read_is_known(files: DiskFiles) -> None:
    for opened in (False, True):
        read = plan_of(files, opened=opened).read["base"]
        assert list(read) == FILES
        assert [one.name for one in read.values()] == FILES


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_was_read_must_stay(files: DiskFiles, name: str, tmp_path: Path) -> None:
    plan = plan_of(files)
    os.utime(files.folder / name, ns=(1, 1))
    findings = Findings()
    report_source_changes(plan, findings)
    assert [(one.code, dict(one.where)) for one in findings] == [
        ("source.changed", {"role": "base", "file": name})
    ]
    conversion = convert(plan, tmp_path / "a.ninfer")
    assert not conversion.written
    assert [one.code for one in conversion.findings] == ["source.changed"]


def test_what_was_not_read_may_change(files: DiskFiles) -> None:
    plan = plan_of(files)
    os.utime(files.folder / "unread.json", ns=(1, 1))
    findings = Findings()
    report_source_changes(plan, findings)
    assert not findings.items


def test_a_file_that_was_replaced_is_still_the_one_that_was_checked(files: DiskFiles) -> None:
    plan = plan_of(files)
    checked = plan.read["base"]["config.json"]
    (files.folder / "config.json").unlink()
    (files.folder / "config.json").write_text("evil")
    buffer = bytearray(checked.size)
    checked.read_into(buffer, 0)
    assert buffer == b'{"a": 1}'
    findings = Findings()
    report_source_changes(plan, findings)
    assert not findings.items


def test_an_input_that_changes(files: DiskFiles, tmp_path: Path) -> None:
    (tmp_path / "i").write_text("i")
    plan = plan_of(files, {"i": tmp_path / "i"})
    (tmp_path / "i").write_text("longer")
    findings = Findings()
    report_source_changes(plan, findings)
    assert [dict(one.where) for one in findings] == [{"input": "i"}]


class Unreadable:
    """A file of any size that nobody may read."""

    name = "huge"
    size = 1 << 50

    def read_into(self, buffer: Any, offset: int) -> None:
        raise AssertionError("read")

    def changed(self) -> None:
        return


def test_a_file_of_another_size_is_not_read() -> None:
    pins = [
        {"kind": "file", "bytes": 7, "sha256": "0" * 64},
        {"kind": "i64-le-rows", "row_width": 2, "rows": 1, "used_row": 0, "sha256": "0" * 64},
    ]
    for stated in pins:
        findings = Findings()
        files = MemoryFiles.of({"model.safetensors": file({"w": ("F32", [2, 4], bytes(32))})})
        bind(recipe_of(document(inputs={"i": stated})), {"base": files}, {"i": Unreadable()}, findings)
        assert [one.code for one in findings] == ["source.file_size_mismatch"]
