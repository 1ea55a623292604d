"""Samples through the engine: what they cover and find, row by row, and that they claim no more than that."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.containers.directory import TensorObject
from ninfer_core.convert import convert
from ninfer_core.formats import BF16, NVFP4, Q4G64_F16S, NumericFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import Report, finding_json
from ninfer_core.verify.sample import Sample, detection
from ninfer_core.verify.tensor import sampled_rows
from tests.build import EVERYTHING, plan, recipe, tensor, write_checkpoint

RNG = np.random.default_rng(11)
JOINT = 777
SAMPLE = Sample(0.05, 3)


@dataclass(frozen=True)
class Case:
    """An object of one format; a row is `row_bytes` of its first plane, as samples count rows."""

    fmt: NumericFormat
    shape: tuple[int, ...]
    row_bytes: int
    rows: int
    tile: int  # rows that are drawn together
    value: Any
    encode: str
    source: dict[str, tuple[str, Any]]


def halves(*shape: int) -> Any:
    """BF16 words of numbers near one."""
    return RNG.integers(0x3F00, 0x4000, shape, np.uint16)


def joined(width: int) -> dict[str, Any]:
    parts = [tensor("top", (JOINT, width), "BF16"), tensor("end", (1400 - JOINT, width), "BF16")]
    return {"op": "concat_rows", "of": parts}


def two(width: int) -> dict[str, tuple[str, Any]]:
    return {"top": ("BF16", halves(JOINT, width)), "end": ("BF16", halves(1400 - JOINT, width))}


CASES = {
    "direct": Case(BF16, (1400, 64), 128, 1400, 1, joined(64), "copy_words", two(64)),
    "vector": Case(
        BF16,
        (100_000,),
        8192,
        25,
        1,
        tensor("v", (100_000,), "BF16"),
        "copy_words",
        {"v": ("BF16", halves(100_000))},
    ),
    "grouped": Case(Q4G64_F16S, (1400, 256), 128, 1400, 1, joined(256), "MAXABS_F16_RECIP_RNE_V1", two(256)),
    "tiles": Case(
        NVFP4,
        (2560, 128),
        64,
        2560,
        128,
        {"op": "nvfp4_matrix", "from": "base", "prefix": "m", "shape": [2560, 128]},
        "copy_nvfp4_words",
        {
            "m.weight_packed": ("U8", RNG.integers(0, 256, (2560, 64), np.uint8)),
            "m.weight_scale": ("F8_E4M3", RNG.integers(1, 0x7F, (2560, 8), np.uint8)),
            "m.weight_global_scale": ("F32", np.array([0x41000000], np.uint32)),
        },
    ),
}


@pytest.fixture(scope="module", params=CASES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Plan, Path]:
    """An artifact of one object, and the plan that made it."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write_checkpoint(folder, case.source)
    rule = {"object": "w", "value": case.value, "encode": case.encode, "format": case.fmt.name}
    bound = plan(folder, recipe([rule]))
    assert convert(bound, folder / "a.ninfer").written
    return case, bound, folder / "a.ninfer"


def judge(path: Path, bound: Plan, sample: Sample | None = SAMPLE, **more: Any) -> Report:
    with open_path(path) as opened:
        return verify(opened, asked((*EVERYTHING, "parity")), Against(bound, sample=sample), **more)


def chosen(case: Case, bound: Plan, sample: Sample = SAMPLE) -> list[int]:
    """The rows of a sample."""
    layout = canonical_layout(case.fmt)
    size = layout.encoded_size(case.fmt, case.shape)
    (item,) = bound.objects
    assert isinstance(item, TensorPlan)
    ranges = sampled_rows(TensorObject(0, "w", case.shape, case.fmt, layout, 0, size), item, sample)
    assert ranges is not None
    return [row for one in ranges for row in one]


def edited(case: Case, path: Path, row: int) -> Path:
    """The artifact with one bit of the row's third byte flipped."""
    content = bytearray(path.read_bytes())
    content[4096 + row * case.row_bytes + 2] ^= 1
    other = path.with_name("edited.ninfer")
    other.write_bytes(content)
    return other


def test_a_sample_covers_no_more_than_it_says(made: tuple[Case, Plan, Path]):
    case, bound, path = made
    report = judge(path, bound)
    (item,) = report.objects
    assert (report.verdict, report.findings) == ("passed", ())
    assert (item.coverage, item.evidence, item.outcome) == ("sampled", None, "passed")
    extents = {check.name: check.coverage for check in report.checks if check.outcome == "passed"}
    assert extents == {**dict.fromkeys(EVERYTHING, "full"), "parity": "sampled"}
    rows = len(chosen(case, bound))
    assert rows < case.rows // 2
    found = detection(rows, case.rows)
    assert report.sample == {
        "fraction": 0.05,
        "seed": 3,
        "rows": rows,
        "of_rows": case.rows,
        "detects": {
            "one_row": found.one_row,
            "one_percent": found.one_percent,
            "one_permille": found.one_permille,
        },
    }
    coverage = report.as_json()["coverage"]
    assert coverage["objects"] == {"full": 0, "sampled": 1, "reused": 0, "none": 0, "total": 1}
    whole = judge(path, bound, None)
    assert (whole.objects[0].coverage, whole.sample) == ("full", None)
    assert whole.objects[0].evidence in ("copied-exact", "derived-exact")


def test_the_same_seed_looks_at_the_same_rows(made: tuple[Case, Plan, Path]):
    case, bound, path = made
    assert judge(path, bound).as_json() == judge(path, bound, workers=1).as_json()
    others = [chosen(case, bound, Sample(0.05, seed)) for seed in range(8)]
    assert len({tuple(rows) for rows in others}) > 1
    assert chosen(case, bound, Sample(0.05, 5)) == others[5]


def test_a_wrong_row_is_found_where_the_sample_looks(made: tuple[Case, Plan, Path]):
    case, bound, path = made
    rows = chosen(case, bound)
    inside = rows[len(rows) // 2]
    report = judge(edited(case, path, inside), bound)
    assert report.verdict == "failed"
    (finding,) = [item for item in report.findings if item.check == "parity"]
    where = finding.where
    place = where["index"] * 2 // case.row_bytes if case.fmt is BF16 else where["row"]
    assert (place, finding.count) == (inside, 1)
    assert where.get("byte", inside * case.row_bytes + 2) == inside * case.row_bytes + 2
    whole = judge(edited(case, path, inside), bound, None)
    assert [finding_json(item) for item in whole.findings] == [finding_json(item) for item in report.findings]


def test_a_wrong_row_elsewhere_is_not_found_and_not_vouched_for(made: tuple[Case, Plan, Path]):
    case, bound, path = made
    rows = set(chosen(case, bound))
    outside = next(row for row in range(case.rows) if row not in rows)
    other = edited(case, path, outside)
    report = judge(other, bound)
    assert (report.verdict, report.objects[0].coverage, report.objects[0].evidence) == (
        "passed",
        "sampled",
        None,
    )
    assert judge(other, bound, None).verdict == "failed"


def test_both_sides_of_a_joint_and_whole_tiles_are_looked_at(made: tuple[Case, Plan, Path]):
    case, bound, _ = made
    for seed in range(4):
        rows = chosen(case, bound, Sample(0.0001, seed))
        assert {0, case.rows - 1} <= set(rows)
        if case.value["op"] == "concat_rows":
            assert {JOINT - 1, JOINT} <= set(rows)
        assert {row // case.tile for row in rows} == {row // case.tile for row in rows[:: case.tile]}
        assert len(rows) % case.tile == 0
