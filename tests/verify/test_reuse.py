"""Results that are taken over: nothing is read again, the report says so, and a key names all that a result rests on."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import convert
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, DiskFiles, MemorySource
from ninfer_core.recipes import Plan, Restriction, bind, parse_recipe
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.restrictions import Scope
from ninfer_core.targets import TARGETS
from ninfer_core.verify import asked, prepare
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import ObjectResult, Report, Reused
from ninfer_core.verify.reuse import Known, object_key
from ninfer_core.verify.sample import Sample
from tests.build import EVERYTHING, plan, recipe, tensor, write_checkpoint

CHECKS = (*EVERYTHING, "restrictions", "source", "parity")
EARLIER = Reused("run-1", "2026-11-30T12:00:00+00:00")
PROFILE = "MAXABS_F16_RECIP_RNE_V1"


@pytest.fixture
def bound(tmp_path: Path) -> Plan:
    """A recipe of two tensors; its artifact is `a.ninfer` beside the checkpoint."""
    rng = np.random.default_rng(5)
    source = {name: ("BF16", rng.integers(0x3F00, 0x4000, (8, 64), np.uint16)) for name in ("a", "b")}
    rules = [
        {"object": name, "value": tensor(name, (8, 64), "BF16"), "encode": encode, "format": fmt}
        for name, encode, fmt in (("a", PROFILE, "Q4G64_F16S"), ("b", "copy_words", "BF16"))
    ]
    finite = {"scope": {"object": "b"}, "rule": "stored_finite", "basis": "contract"}
    made = plan(write_checkpoint(tmp_path, source), recipe(rules, restrictions=[finite]))
    assert convert(made, tmp_path / "a.ninfer").written
    return made


class Watched(DiskFiles):
    """A folder that knows which bytes were read of its files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read: list[tuple[int, int]] = []

    def open(self, name: str) -> ByteSource:
        """See `FileSet.open`."""
        source, read = super().open(name), self.read

        class One:
            """One file."""

            def __getattr__(self, member: str) -> Any:
                return getattr(source, member)

            def read_into(self, buffer: Any, offset: int) -> None:
                read.append((offset, len(buffer)))
                source.read_into(buffer, offset)

        return One()  # type: ignore[return-value]


def judge(folder: Path, against: Against, known: Known | None = None) -> tuple[Report, int]:
    """The report, and how many bytes of objects were read."""
    with ExitStack() as stack:
        files = stack.enter_context(Watched(folder))
        ahead = prepare("ninfer", files, "a.ninfer", asked(CHECKS), against, known=known)
        report = ahead.conclude(ahead.pool.run(task.run for task in ahead.tasks))
        held = [
            range(4096 + (one.offset or 0), 4096 + (one.offset or 0) + (one.bytes or 0))
            for one in report.objects
        ]
        read = [range(offset, offset + size) for offset, size in files.read]
        return report, sum(max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a in held for b in read)


def taken(report: Report, *ordinals: int) -> dict[int, ObjectResult]:
    """The results of a report as a later run takes them over."""
    return {
        item.ordinal: replace(item, reused=EARLIER) for item in report.objects if item.ordinal in ordinals
    }


def test_nothing_is_read_again_where_everything_is_known(bound: Plan, tmp_path: Path):
    first, read = judge(tmp_path, Against(bound))
    assert (first.verdict, {item.coverage for item in first.objects}) == ("passed", {"full"})
    assert read > 0
    again, read = judge(tmp_path, Against(bound), Known(first.files, taken(first, 0, 1), source=True))
    assert (again.verdict, read) == ("passed", 0)
    assert again.digest == first.digest
    assert again.content_root == first.content_root
    assert [item.evidence for item in again.objects] == ["derived-exact", "copied-exact"]
    document = again.as_json()
    assert {item["coverage"] for item in document["objects"]} == {"reused"}
    assert [item["reused_from"] for item in document["objects"]] == [
        {"run": EARLIER.run, "date": EARLIER.date}
    ] * 2
    assert document["coverage"]["objects"] == {"full": 0, "sampled": 0, "reused": 2, "none": 0, "total": 2}
    extents = {check.name: check.coverage for check in again.checks if check.outcome == "passed"}
    # A file's framing and the directory of the source were looked at today, words were not.
    assert {name for name, extent in extents.items() if extent != "reused"} <= {"source"}


def test_what_is_not_known_is_read(bound: Plan, tmp_path: Path):
    first, _ = judge(tmp_path, Against(bound))
    again, read = judge(tmp_path, Against(bound), Known(None, taken(first, 0)))
    assert [item.coverage for item in again.objects] == ["reused", "full"]
    assert again.verdict == "passed"
    assert read > 0
    parity = next(check for check in again.checks if check.name == "parity")
    assert (parity.outcome, parity.coverage, parity.objects) == ("passed", "reused", 2)


def test_a_fault_beside_known_results_is_found(bound: Plan, tmp_path: Path):
    first, _ = judge(tmp_path, Against(bound))
    path = tmp_path / "a.ninfer"
    content = bytearray(path.read_bytes())
    content[4096 + (first.objects[1].offset or 0) + 1] ^= 1
    path.write_bytes(content)
    again, _ = judge(tmp_path, Against(bound), Known(None, taken(first, 0)))
    assert again.verdict == "failed"
    assert {item.object for item in again.findings} == {"b"}
    assert again.digest != first.digest


@pytest.mark.parametrize("known", [False, True])
def test_sources_that_an_earlier_run_compared_are_reused(known: bool, tmp_path: Path):
    """Two roles must hold the same words: with `source` known nobody reads them again, and the check says so."""
    words = ("BF16", np.full((8, 64), 0x3F80, np.uint16))
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        write_checkpoint(folder, {"a": words})
    document = recipe(
        [{"object": "a", "value": tensor("a", (8, 64), "BF16"), "encode": "copy_words", "format": "BF16"}],
        cross_checks=[
            {
                "check": "equal_source_tensors",
                "left": "base",
                "right": "other",
                "dtype": "BF16",
                "count": 1,
                "names": [{"name": "a"}],
            }
        ],
    )
    document["sources"]["other"] = document["sources"]["base"]
    findings = Findings()
    parsed = parse_recipe(json.dumps(document).encode(), findings)
    assert parsed is not None, list(findings)

    def fresh() -> Plan:
        folders = {"base": DiskFiles(tmp_path), "other": DiskFiles(tmp_path / "other")}
        made = bind(parsed, folders, {}, findings)
        assert made is not None, list(findings)
        return made

    made = fresh()
    assert convert(made, tmp_path / "a.ninfer").written
    report, _ = judge(tmp_path, Against(made), Known(source=known))
    check = next(one for one in report.checks if one.name == "source")
    assert (check.outcome, check.coverage) == ("passed", "reused" if known else "full")
    write_checkpoint(tmp_path / "other", {"a": ("BF16", np.full((8, 64), 0x3F81, np.uint16))})
    report, _ = judge(tmp_path, Against(fresh()), Known(source=known))
    assert {item.code for item in report.findings} == (set() if known else {"source.tensors_differ"})


class Names:
    """Digests of what is read: a stand-in that names each by itself."""

    def __init__(self, salt: str = "") -> None:
        self.salt = salt

    def tensor(self, role: str, name: str) -> str:
        """See `SourceDigests.tensor`."""
        return f"{self.salt}{role}:{name}"

    def file(self, role: str | None, name: str) -> str:
        """See `SourceDigests.file`."""
        return f"{self.salt}{role}/{name}"


def test_a_key_names_everything_that_a_result_rests_on(bound: Plan, monkeypatch: pytest.MonkeyPatch):
    against = Against(bound)
    item, other = bound.objects
    assert isinstance(item, TensorPlan)
    claim = Restriction(Scope(None, None, "*"), "stored_finite", "contract", "$.restrictions[0]")

    def key(**changes: Any) -> str:
        whole: dict[str, Any] = {
            "identity": "i",
            "asked": asked(CHECKS),
            "against": against,
            "plan": item,
            "claims": (claim,),
            "digests": Names(),
            "related": (),
            **changes,
        }
        return object_key(*whole.values())

    changes: list[dict[str, Any]] = [
        {"identity": "j"},
        {"asked": asked(["parity"])},
        {"against": replace(against, targets=(TARGETS[0],))},
        {"against": replace(against, targets=(TARGETS[1],))},
        {"against": replace(against, targets=TARGETS, auto=True)},
        {"against": replace(against, canonical=True)},
        {"against": replace(against, sample=Sample(0.1, 1))},
        {"against": replace(against, sample=Sample(0.1, 2))},
        {"plan": None},
        {"plan": other},
        {"plan": replace(item, encode=None)},
        {"claims": ()},
        {"claims": (replace(claim, basis="recommended"),)},
        {"claims": (replace(claim, rule="finite_positive"),)},
        {"digests": Names("another ")},
        {"related": ("k",)},
    ]
    keys = [key(), *(key(**change) for change in changes)]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    monkeypatch.setattr("ninfer_core.verify.report.__version__", "0.0.0-other")
    assert key() not in keys


class OtherNumbers(Names):
    """The tensor `numbers` holds other bytes."""

    def tensor(self, role: str, name: str) -> str:
        """See `SourceDigests.tensor`."""
        return super().tensor(role, name) + "!" * (name == "numbers")


class OtherCounts(Names):
    """The input `counts` holds other bytes."""

    def file(self, role: str | None, name: str) -> str:
        """See `SourceDigests.file`."""
        return super().file(role, name) + "!" * (name == "counts")


def test_rows_by_number_rest_on_all_that_the_numbers_come_from(tmp_path: Path):
    """The tree of `rows` names only the object that its numbers are: what makes that one takes part too."""
    halves = np.full((8, 64), 0x3F80, np.uint16)
    numbers = np.array([3, 1, 7], np.uint32)
    write_checkpoint(tmp_path, {"t": ("BF16", halves), "numbers": ("I32", numbers), "o": ("BF16", halves)})
    values = {
        "ids": (tensor("numbers", (3,), "I32"), "I32"),
        "rows": ({"op": "gather_rows", "ids": "ids", "of": tensor("t", (8, 64), "BF16")}, "BF16"),
        "other": (tensor("o", (8, 64), "BF16"), "BF16"),
    }
    rules = [
        {"object": name, "value": value, "encode": "copy_words", "format": fmt}
        for name, (value, fmt) in values.items()
    ]
    findings = Findings()
    document = json.dumps(recipe(rules, inputs={"counts": {"kind": "file"}})).encode()
    parsed = parse_recipe(document, findings)
    assert parsed is not None, list(findings)
    made = bind(parsed, {"base": DiskFiles(tmp_path)}, {"counts": MemorySource("counts", b"x")}, findings)
    assert made is not None, list(findings)

    def keys(digests: Names) -> dict[str, str]:
        against = Against(made)
        return {
            item.name: object_key("i", asked(CHECKS), against, item, (), digests) for item in made.objects
        }

    plain = keys(Names())
    for other, concerned in ((OtherNumbers(), {"ids", "rows"}), (OtherCounts(), {"rows"})):
        assert {name for name, key in keys(other).items() if key != plain[name]} == concerned
