"""The engine: coverage, verdicts, threads, large tensors cut into blocks, files that change underfoot."""

import json
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.errors import CannotRead, CutShort, Usage
from ninfer_core.findings import Findings
from ninfer_core.formats import (
    BF16,
    FP8_E4M3FN_ROW_BF16S,
    FP32,
    I32,
    NVFP4,
    Q4G64_F16S,
    Q6G64_F16S,
    W8G32_F16S,
)
from ninfer_core.io import MemorySource
from ninfer_core.opening import open_path
from ninfer_core.verify import asked, default_checks, prepare, verify
from ninfer_core.verify.against import Against
from tests.build import (
    EVERYTHING,
    codes,
    legal_payload,
    ninfer_file,
    plan,
    recipe,
    run,
    tensor,
    write_artifact,
    write_checkpoint,
)

WIDE = [
    (Q4G64_F16S, (2, (1 << 22) + 200)),
    (W8G32_F16S, (1, (1 << 22) + 33)),
    (Q6G64_F16S, (9, 1 << 20)),
    (FP8_E4M3FN_ROW_BF16S, (2, (1 << 22) + 1000)),
    (NVFP4, (128, 40_000 // 64 * 64)),
    (FP32, (5_000_000,)),
]


@pytest.mark.parametrize(("fmt", "shape"), WIDE, ids=[fmt.name for fmt, _ in WIDE])
def test_large_tensors_give_what_small_ones_give(fmt, shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Read in blocks by several threads or whole in one, the report is the same to the last digit."""
    payload = legal_payload(fmt, shape, np.random.default_rng(7))
    path = write_artifact(tmp_path / "a.ninfer", {"w": (fmt, shape, payload)})
    monkeypatch.setattr("ninfer_core.verify.tensor.WHOLE_BYTES", 0)
    reports = [run(path, workers=workers).as_json() for workers in (1, 4)]
    monkeypatch.setattr("ninfer_core.verify.tensor.WHOLE_BYTES", 1 << 30)
    reports.append(run(path, workers=1).as_json())
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["verdict"] == "passed"
    metrics = reports[0]["objects"][0]["metrics"]
    if "code_histogram" in metrics:
        assert sum(metrics["code_histogram"]["counts"]) == np.prod(shape)
        n, k = shape
        assert metrics["groups"] == (n if fmt is FP8_E4M3FN_ROW_BF16S else n * -(-k // fmt.group))


@pytest.mark.parametrize(("fmt", "shape"), WIDE[:5], ids=[fmt.name for fmt, _ in WIDE[:5]])
def test_a_fault_in_the_last_block_is_placed(fmt, shape, tmp_path: Path):
    payload = legal_payload(fmt, shape, np.random.default_rng(8))
    n, k = shape
    if fmt is FP8_E4M3FN_ROW_BF16S:
        payload[n * k - 1] = 0xFF
        place = {"row": n - 1, "column": k - 1}
    elif fmt is NVFP4:
        payload[-5] = 0x7F  # the last byte of the swizzled plane: last row, last group
        place = {"row": n - 1, "group": k // 16 - 1}
    else:
        groups = -(-k // 128) * 128 // fmt.group
        logical = -(-k // fmt.group)
        at = payload.size - 2 * (groups - logical) - 2
        payload[at : at + 2] = (0x00, 0x7C)
        place = {"row": n - 1, "group": logical - 1}
    report = run(write_artifact(tmp_path / "a.ninfer", {"w": (fmt, shape, payload)}))
    finding = next(finding for finding in report.findings if finding.severity == "error")
    assert {key: finding.where[key] for key in place} == place
    assert finding.count == 1
    with open_path(tmp_path / "a.ninfer") as opened:
        source = opened.files.open(opened.entry)
        byte = bytearray(1)
        source.read_into(byte, finding.where["offset"])
    assert byte[0] == payload[finding.where["byte"]]


def test_parity_of_wide_rows(tmp_path: Path):
    """A row wider than a block is encoded and compared in runs of columns; the padded end is in the last one."""
    from ninfer_core.convert import convert

    shape = (1, (1 << 22) + 200)
    words = np.random.default_rng(9).normal(size=shape).astype("<f4").view("<u4")
    write_checkpoint(tmp_path, {"w": ("F32", words)})
    document = recipe(
        [
            {
                "object": "w",
                "value": tensor("w", shape, "F32"),
                "encode": "MAXABS_F16_RECIP_RNE_V1",
                "format": "Q5G64_F16S",
            }
        ]
    )
    bound = plan(tmp_path, document)
    assert convert(bound, tmp_path / "a.ninfer").written
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "passed"
    assert report.objects[0].evidence == "derived-exact"
    assert report.objects[0].metrics["error"]["sqnr_db"] > 20
    content = bytearray((tmp_path / "a.ninfer").read_bytes())
    content[4096 + ((1 << 22) // 2) + 10] ^= 0x10  # base plane, columns 2^22 + 20 and 21
    (tmp_path / "b.ninfer").write_bytes(content)
    finding = next(f for f in run(tmp_path / "b.ninfer", bound).findings if f.code == "parity.code_mismatch")
    assert finding.where["column"] == (1 << 22) + 21
    assert finding.count == 1


def test_broken_entries_leave_the_rest_checked(tmp_path: Path):
    """One bad entry: the verdict fails, the good object is covered, the coverage says what was not."""
    good = {
        "name": "good",
        "kind": "tensor",
        "shape": [2],
        "format": "BF16",
        "layout": "contiguous-le-v1",
        "offset": 0,
        "bytes": 4,
    }
    bad = {**good, "name": "bad", "offset": 256, "format": "FP16"}
    root = {"identity": {"model_id": "m", "weights_id": "w"}, "objects": [good, bad]}
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, root, bytes([1, 2, 3, 4]).ljust(260, b"\0")))
    report = run(path)
    document = report.as_json()
    assert report.verdict == "failed"
    assert [item["outcome"] for item in document["objects"]] == ["passed", "failed"]
    assert document["coverage"]["objects"] == {"full": 1, "sampled": 0, "reused": 0, "none": 1, "total": 2}
    outcomes = {check["name"]: (check["outcome"], check["coverage"]) for check in document["checks"]}
    assert outcomes["values"] == ("not_checked", "partial")
    assert outcomes["structure"] == ("failed", "partial")
    assert document["artifact"]["content_root"] is None


def test_what_was_asked_and_not_done_is_incomplete(tmp_path: Path):
    path = write_artifact(tmp_path / "a.ninfer", {"w": (BF16, (2,), np.array([1, 2, 3, 4], np.uint8))})
    with open_path(path) as opened:
        report = verify(opened, asked(("structure", "parity")))
    assert report.verdict == "incomplete"
    parity = next(check for check in report.checks if check.name == "parity")
    assert (parity.outcome, parity.coverage, parity.objects) == ("not_checked", "none", 0)
    assert parity.reason
    assert {check.name for check in report.checks if check.outcome != "not_asked"} == {"structure", "parity"}


def test_asking_for_nothing_or_nonsense():
    with pytest.raises(Usage):
        asked(())
    with pytest.raises(Usage, match="'value'"):
        asked(("value",))
    assert "structure" in asked(("values",))
    own = ("structure", "layout", "values", "statistics")
    assert default_checks("ninfer") == own
    assert default_checks("ninfer", target=True) == (*own, "inventory")
    assert default_checks("ninfer", recipe=True) == (*own, "restrictions", "relations")
    assert default_checks("ninfer", recipe=True, source=True)[-2:] == ("source", "parity")
    assert "values" not in default_checks("safetensors")
    with_all = default_checks("safetensors", target=True, recipe=True, source=True)
    assert {"inventory", "restrictions", "source", "parity"} <= set(with_all)  # asked, and not to be answered


class Shrinking(MemorySource):
    """A file that loses its tail once the directory has been read, or answers with an I/O error."""

    def __init__(self, content: bytes, left: int, broken: bool) -> None:
        super().__init__("a.ninfer", content)
        self.left, self.broken = left, broken

    def read_into(self, buffer, offset: int) -> None:
        if offset + len(memoryview(buffer)) > self.left:
            if self.broken:
                raise CannotRead("cannot read a.ninfer: Input/output error")
            raise CutShort(self.name, offset, len(memoryview(buffer)), max(0, self.left - offset))
        super().read_into(buffer, offset)


class OneFile:
    """A `FileSet` of one source."""

    names = ("a.ninfer",)

    def __init__(self, source) -> None:
        self.source = source

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def open(self, name: str):
        return self.source


@pytest.mark.parametrize("size", [64, 1 << 16, 9 << 20], ids=["small", "middle", "large"])
@pytest.mark.parametrize("broken", [False, True], ids=["cut", "unreadable"])
def test_a_file_that_ends_or_fails_while_being_read(size: int, broken: bool, tmp_path: Path):
    payload = np.ones(size, np.uint8)
    path = write_artifact(tmp_path / "a.ninfer", {"w": (BF16, (size // 2,), payload)})
    content = path.read_bytes()
    source = Shrinking(content, len(content) - 1, broken)
    prepared = prepare("ninfer", OneFile(source), "a.ninfer", asked(EVERYTHING))
    report = prepared.conclude(prepared.pool.run(task.run for task in prepared.tasks))
    json.dumps(report.as_json(), allow_nan=False)
    assert report.digest is None
    if broken:
        # An unreachable byte is no fault of the artifact, and no pass either.
        assert report.verdict == "incomplete"
        assert report.objects[0].reasons["values"].endswith("Input/output error")
    else:
        assert report.verdict == "failed"
        assert codes(report) == {"structure.file_cut_short"}
        assert {finding.object for finding in report.findings} == {None, "w"}


def test_a_file_cut_on_disk_while_it_is_open(tmp_path: Path):
    path = write_artifact(tmp_path / "a.ninfer", {"w": (FP32, (1 << 20,), np.ones(4 << 20, np.uint8))})
    with open_path(path) as opened:
        opened.files.open(opened.entry)
        with path.open("r+b") as file:
            file.truncate(1 << 20)
        report = verify(opened, asked(EVERYTHING))
    assert report.verdict == "failed"
    assert "structure.file_cut_short" in codes(report)
    assert "structure.file_changed" in codes(report)


def test_parity_names_what_the_recipe_and_the_artifact_do_not_share(tmp_path: Path):
    words = np.arange(6, dtype=np.uint32).reshape(2, 3)
    write_checkpoint(tmp_path, {"a": ("I32", words), "b": ("I32", words)})
    (tmp_path / "t.json").write_bytes(b"{}")
    rules = [
        {"object": name, "value": tensor(name, (2, 3), "I32"), "encode": "copy_words", "format": "I32"}
        for name in "ab"
    ]
    bound = plan(tmp_path, recipe(rules))
    raw = words.astype("<u4").view(np.uint8).reshape(-1)
    path = write_artifact(tmp_path / "x.ninfer", {"a": (I32, (3, 2), raw), "c": (I32, (2, 3), raw)})
    report = run(path, bound)
    assert codes(report) == {"parity.object_differs", "parity.object_missing", "parity.object_without_rule"}
    assert {finding.object for finding in report.findings} == {"a", "b", "c"}
    assert report.verdict == "failed"


def test_a_source_that_the_profile_refuses(tmp_path: Path):
    words = np.ones((2, 64), "<f4")
    write_checkpoint(tmp_path, {"w": ("F32", words.view("<u4"))})
    document = recipe(
        [
            {
                "object": "w",
                "value": tensor("w", (2, 64), "F32"),
                "encode": "MAXABS_F16_RECIP_RNE_V1",
                "format": "Q4G64_F16S",
            }
        ]
    )
    from ninfer_core.convert import convert

    assert convert(plan(tmp_path, document), tmp_path / "a.ninfer").written
    words[1, 5] = np.nan
    write_checkpoint(tmp_path, {"w": ("F32", words.view("<u4"))})
    report = run(tmp_path / "a.ninfer", plan(tmp_path, document))
    finding = next(finding for finding in report.findings if finding.code == "parity.source_refused")
    assert (finding.where["row"], finding.where["group"]) == (1, 0)
    assert report.verdict == "failed"
    parity = next(check for check in report.checks if check.name == "parity")
    assert parity.outcome == "failed"
    assert report.objects[0].metrics.get("error") is None


def test_unbound_recipes_fail_with_their_findings(tmp_path: Path):
    findings = Findings()
    findings.add("source.tensor_missing", "gone", object="w")
    path = write_artifact(tmp_path / "a.ninfer", {"w": (BF16, (2,), np.array([1, 2, 3, 4], np.uint8))})
    with open_path(path) as opened:
        report = verify(opened, asked((*EVERYTHING, "parity")), Against(None, findings))
    assert report.verdict == "failed"
    assert codes(report) == {"source.tensor_missing"}
