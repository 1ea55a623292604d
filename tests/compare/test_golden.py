"""The first revision, files of other makers, and broken ones, which are never called identical."""

import json
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.compare.comparison import Comparison
from ninfer_core.containers.directory import BrokenObject
from ninfer_core.formats import BF16, FP32, Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.layouts import canonical_layout
from tests.build import ninfer_file
from tests.compare.build import finite_payload, run
from tests.vectors.load import HERE

GOLDEN = HERE / "golden"
V1, V2, V3 = (
    GOLDEN / "v1" / "v1_seven_formats.ninfer",
    GOLDEN / "v2" / "v2_nine_formats.ninfer",
    GOLDEN / "v3" / "v3_nine_formats.ninfer",
)
BROKEN = sorted(path for path in (GOLDEN / "invalid").rglob("*.ninfer") if not path.name.startswith("."))


def test_the_first_revision_has_the_same_content(tmp_path: Path):
    rng, payload = np.random.default_rng(1), b""
    entries = []
    for fmt in (BF16, FP32, Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S):
        offset, words = len(payload), finite_payload(fmt, (3, 100), rng).tobytes()
        layout = canonical_layout(fmt).name
        place = {"offset": offset, "bytes": len(words)}
        entry = {
            "name": f"w/{fmt.name}",
            "kind": "tensor",
            "shape": [3, 100],
            "format": fmt.name,
            "layout": layout,
        }
        entries.append({**entry, **place})
        payload += words.ljust(-(-len(words) // 256) * 256, b"\0")
    first, second = tmp_path / "a.ninfer", tmp_path / "b.ninfer"
    first.write_bytes(ninfer_file(1, {"model_id": "m", "objects": entries}, payload))
    identity = {"model_id": "m", "weights_id": "w"}
    second.write_bytes(ninfer_file(2, {"identity": identity, "objects": entries}, payload))
    found = run(first, second)
    assert (found.a.revision, found.b.revision, found.verdict) == (1, 2, "identical")
    assert not found.a.findings
    assert found.a.content_root == found.b.content_root is not None


def test_files_of_other_makers_across_revisions():
    for a, b in ((V1, V2), (V2, V3), (V3, GOLDEN / "v3" / "v3_split.ninfer")):
        found = run(a, b)
        strict(found)
        assert not {"unreadable", "re-packed"} & {item.status for item in found.objects}
        for item in found.objects:
            if item.status == "changed" and item.reason is None:
                assert (
                    item.metrics["changed_words"]
                    or item.metrics["changed_scales"]
                    or item.metrics["divisor_changed"]
                )
    added = {item.b.format.name for item in run(V1, V2).objects if item.status == "added"}
    assert added == {"NVFP4", "FP8_E4M3FN_ROW_BF16S"}


def strict(comparison: Comparison) -> None:
    text = json.dumps(comparison.as_json(), allow_nan=False)
    assert json.loads(text) == json.loads("".join(comparison.json_pieces()))


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.relative_to(GOLDEN / "invalid").as_posix())
def test_whatever_is_broken(path: Path):
    with_itself, with_a_sound_one = run(path, path), run(V2, path)
    for found in (with_itself, with_a_sound_one):
        strict(found)
        for item in found.objects:
            if isinstance(item.a, BrokenObject) or isinstance(item.b, BrokenObject):
                assert item.status == "unreadable"
    unread = any(item.status == "unreadable" for item in with_itself.objects)
    assert with_itself.verdict == ("incomplete" if unread or not with_itself.a.listed else "identical")
