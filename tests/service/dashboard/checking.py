"""Self-checks for pages to show: devices of every kind and age, wrong answers, hostile words, and one that runs."""

from dataclasses import dataclass
from datetime import timedelta

from service.records import jobs
from service.records.models import Job, SelfCheck, Shard
from service.selfchecks import Check, settled
from tests.service.dashboard.rows import MARKUP, MEGABYTE, REORDERED
from tests.service.dashboard.seed import Seed
from tests.service.selfchecked import CPU, GPU, document, stored

H200 = {**GPU, "model": "NVIDIA H200", "driver": "580.95.05"}
WRONG = ("encode.Q4G64_F16S.BF16.cuda", "matvec.NVFP4.BF16.cuda")
BROKEN = ("reconstruct.Q6G64_F16S.FP32.cuda",)
UNCHECKED = ("encode.W8G32_F16S.F32.cuda", "encode.W8G32_F16S.BF16.cuda")


@dataclass(frozen=True, slots=True)
class Checking:
    """What was seeded, by what it shows."""

    passed: SelfCheck
    failed: SelfCheck
    hostile: SelfCheck
    running: Job
    queued: Job
    cancelled: Job


def checking(seed: Seed) -> Checking:
    """Seed it."""
    hostile = {**GPU, "name": "cuda:7", "model": MARKUP, "capability": REORDERED, "driver": MEGABYTE}
    with seed.database.write() as session:
        stored(session, document({**H200, "driver": "570.12"}), ago=timedelta(days=50))
        stored(session, document({**H200, "name": "cuda:1"}), ago=timedelta(days=20))
        said = document(hostile, unchecked=("check.NVFP4.cuda",))
        said["kernels"][0] |= {"reason": MEGABYTE, "outcome": "error"}
        strange = stored(session, said, ago=timedelta(days=3))
        failed = stored(
            session,
            document(H200, failed=WRONG, errors=BROKEN, unchecked=UNCHECKED),
            ago=timedelta(hours=30),
        )
        passed = stored(
            session, document({**CPU, "model": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"}, "quick")
        )
    running, queued, cancelled = (_job(seed, device) for device in ("cuda:0", "auto", "cpu"))
    with seed.database.write() as session:
        jobs.begin(session, running.id)
        rows = [Shard(number=number, first=0, stop=0, bytes=0, objects=1) for number in range(64)]
        jobs.plan(session, running.id, 64, 0, rows)
        for number in range(23):
            jobs.finish_shard(session, running.id, number, "[]")
        jobs.finish(session, cancelled.id, "cancelled")
    return Checking(passed, failed, strange, running, queued, cancelled)


def _job(seed: Seed, device: str) -> Job:
    job = seed.job("selfcheck")
    with seed.database.write() as session:
        kept = jobs.get(session, job.id)
        assert kept is not None
        kept.request = settled(Check(device))
    return job
