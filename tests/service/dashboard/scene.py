"""One small world with a bit of everything, as screenshots and tests show it."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from service.records.models import Artifact, Comparison, Conversion, Run
from tests.service.dashboard.checking import Checking, checking
from tests.service.dashboard.coming import come_from
from tests.service.dashboard.compared import compare
from tests.service.dashboard.rows import HOSTILE, finding, parity_findings, tensor_names, unaccounted
from tests.service.dashboard.schemed import Schemed, schemed
from tests.service.dashboard.seed import Seed
from tests.service.dashboard.tenant import Tenant, tenant


@dataclass(frozen=True, slots=True)
class Scene:
    """What was seeded, by what it shows."""

    large: Artifact
    hostile: Artifact
    passed: Run
    sampled: Run
    reused: Run
    failed: Run
    incomplete: Run
    running: Run
    queued: Run
    error: Run
    cancelled: Run
    hostile_run: Run
    written: Conversion
    refused: Conversion
    different: Comparison
    comparing: Comparison
    hostile_comparison: Comparison
    checking: Checking
    schemed: Schemed
    tenant: Tenant


def scene(seed: Seed, scratch: Path) -> Scene:
    """Seed it; the large artifact has 3,000 objects."""
    names = tensor_names(3_000)
    small = tensor_names(40)
    large = seed.artifact("qwen3.6-27b.ninfer", names, origin="converted", ago=timedelta(days=2))
    written = seed.conversion(large)
    draft = seed.artifact("qwen3.6-27b-draft.ninfer", small, ago=timedelta(hours=5))
    bare = seed.artifact("minilm-l6-v2.ninfer", tensor_names(12), identity=("all-minilm-l6-v2", "q8"))
    source = seed.artifact("model.safetensors", small, kind="safetensors", identity=(None, None))
    hostile = seed.artifact("h.ninfer", HOSTILE, identity=(HOSTILE[0], HOSTILE[1]))
    seed.artifact("broken.ninfer", identity=(None, None), listing="unreadable")
    seed.artifact("just-pushed.ninfer", identity=(None, None), listing="pending")
    passed = seed.run(large, "passed", ago=timedelta(hours=26))
    failed = seed.run(
        draft, "failed", findings=parity_findings(small), failed=(1, 2, 4), ago=timedelta(minutes=42)
    )
    reasons = {"parity": "no recipe was given", "values": "5 of 40 objects could not be read"}
    incomplete = seed.run(
        source, "incomplete", not_checked=range(5), reasons=reasons, ago=timedelta(minutes=9)
    )
    error = seed.run(
        bare,
        "error",
        error={"code": "cannot_read", "detail": "the content sha256:12ab\u202e is not in the store"},
    )
    hostile_run = seed.run(
        hostile,
        "failed",
        findings=[
            finding(
                "values.scale_invalid",
                name,
                f"{name[:500]}: bad",
                where={"member": name[:900]},
                found=name[:900],
            )
            for name in HOSTILE
        ],
        failed=range(len(HOSTILE)),
    )
    sampled = seed.run(bare, "passed", extent="sampled", findings=[unaccounted()], ago=timedelta(minutes=5))
    reused = seed.run(bare, "passed", extent="reused", ago=timedelta(minutes=3))
    cancelled = seed.run(bare, "cancelled")
    queued = seed.run(bare, "queued")
    running = seed.run(large, "running")
    seed.advance(running, 0.37)
    refused = seed.conversion(
        None,
        "failed",
        findings=[
            finding(
                "convert.source_not_finite",
                "text/layers/0/mlp/down",
                "row 3, column 17 of the source is NaN, and Q4G64_F16S has no code for it",
                where={"row": 3, "column": 17},
                expected="a finite number",
                found="NaN",
                about="source",
            )
        ],
    )
    different = compare(seed, large, draft, small)
    hostile_comparison = compare(seed, hostile, draft, HOSTILE, "failed")
    comparing = compare(seed, draft, bare, (), "running")
    come_from(seed, large, hostile, passed, written)
    return Scene(
        large,
        hostile,
        passed,
        sampled,
        reused,
        failed,
        incomplete,
        running,
        queued,
        error,
        cancelled,
        hostile_run,
        written,
        refused,
        different,
        comparing,
        hostile_comparison,
        checking(seed),
        schemed(seed),
        tenant(seed, scratch, seed.artifact("tried-again.ninfer", small[:2])),
    )
