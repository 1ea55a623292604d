"""Where the artifacts of the scene come from: claims, what was converted and what was verified; and results reused."""

from typing import Final

from sqlalchemy import update

from ninfer_core.targets import TARGETS
from service.records import identities, provenance
from service.records.models import Artifact, Conversion, Result, Run
from service.records.provenance import Fact
from tests.service.dashboard.rows import HOSTILE, sha256
from tests.service.dashboard.seed import Seed

TENSOR: Final = f"sha256:{sha256('a tensor in two artifacts')}"
DETECTS: Final = {"one_row": 0.01, "one_percent": 0.9999999, "one_permille": 0.63}
SAMPLE: Final = {"fraction": 0.01, "seed": 7, "rows": 1_234, "of_rows": 123_400, "detects": DETECTS}
SHORT: Final = [name[:900] for name in HOSTILE]


def come_from(seed: Seed, large: Artifact, hostile: Artifact, passed: Run, written: Conversion) -> None:
    """Write it."""
    target = TARGETS[0]
    known = [
        Fact("recipe", written.recipe_digest),
        Fact("checkpoint", f"sha256:{sha256('weights')}", "base"),
        Fact("encoder_profile", "MAXABS_F16_RECIP_RNE_V1"),
        Fact("format", "Q4G64_F16S"),
        Fact("target", target.digest),
        Fact("tool_version", "0.1.0"),
    ]
    claims = {"provenance": {"sources": {name: {"repository": name} for name in SHORT}}, "n": "<b>x</b>"}
    with seed.database.write() as session:
        identities.save(session, large, [(1, TENSOR), (2, TENSOR)])
        identities.save(session, hostile, [(0, TENSOR)])
        provenance.save(session, large, "claimed", large.id, known[:2])
        provenance.save(session, large, "converted", written.id, known[:4])
        provenance.save(session, large, "verified", passed.id, known)
        provenance.save(
            session, hostile, "claimed", hostile.id, [Fact("checkpoint", name, name) for name in SHORT]
        )
        provenance.save(session, hostile, "claimed", hostile.id, [known[2]])
        stored = session.merge(hostile)
        stored.claims = claims
        run = session.merge(passed)
        run.target, run.target_digest, run.canonical = "auto", target.digest, True
        run.report = {**(run.report or {}), "sample": SAMPLE}
        run.reuse = {"runs": {passed.id: [[0, 9]]}, "source": None}
        session.execute(
            update(Result)
            .where(Result.run_id == passed.id, Result.ordinal < 10)
            .values(coverage="reused", reused_run_id=passed.id)
        )
