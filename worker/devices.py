"""The devices of this worker: each is proved before any work is taken, and one of them is worked on.

The processor is always proved, for it answers where a GPU fails. A GPU is worked on when it passes the quick check now,
and while no failure of a full check stands against it under the same keys. A kernel of the processor against which one
stands is asked again in full.
"""

import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from ninfer_core.errors import NinferError
from service import evidence, selfchecks
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT
from service.records.types import new_id
from service.selfchecks import AUTO
from worker.watch import Draining

if TYPE_CHECKING:
    from ninfer_core.kernels.devices import Device
    from ninfer_core.kernels.failover import FailingOver
    from ninfer_core.kernels.processor import Processor
    from ninfer_core.selfcheck.result import SelfCheck

log = structlog.get_logger()
CPU: Final = "cpu"


class SelfCheckFailed(NinferError):
    """A device whose kernels gave a wrong answer: it is not worked on."""

    code = "self_check_failed"

    def __init__(self, device: Mapping[str, Any], result: Mapping[str, Any], told: str) -> None:
        first = result["first_mismatch"]
        where = (
            f"case {first['case']}, {first['where']}: expected {first['expected']}, found {first['found']}"
            if first
            else result["reason"] or "its answers differ from run to run"
        )
        super().__init__(
            f"{told} of {device['name']} ({device['model']}) did not pass: {result['kernel']}: {where}"
        )
        self.kernel = result["kernel"]


class Devices:
    """What one worker has; until `prove`, whatever works here is the processor's work."""

    def __init__(self, wanted: str = AUTO, worker: str = "") -> None:
        """`wanted` is the setting `device`; `worker` is who says what was found."""
        self.worker = worker
        self._wanted = wanted
        self._used = CPU
        self._gpu: Processor | None = None
        self._given: weakref.WeakSet[FailingOver] = weakref.WeakSet()  # to passes that may go on
        self._known: dict[str, Device] = {}
        self._database: Database | None = None
        self.refused: SelfCheckFailed | None = None  # why this worker may go on no longer

    def prove(self, database: Database, told: Callable[[], None]) -> None:
        """Check the devices at the quick level, store what is found, and choose; `told` is called on the way and may raise.

        Raises: SelfCheckFailed, NoDevice, SQLAlchemyError.
        """
        from ninfer_core.kernels import cache
        from ninfer_core.kernels.devices import devices, find_device

        begin = time.monotonic()
        if (compiling := cache.compiling_ahead()) is not None:
            log.info("worker.compiling", says=compiling)
        cpu = find_device(CPU)
        self._require(self._checked(database, cpu, told))
        while (stands := self._refuted(database, cpu)) is not None:
            again = self._checked(database, cpu, told, "full", stands.result.kernel)
            self._require(again, whole=True)
        gpu: Device | None = None
        if self._wanted == AUTO:
            gpu = next((one for one in devices() if one.device_class != CPU and not one.simulated), None)
        elif self._wanted != CPU:
            gpu = find_device(self._wanted)
        if gpu is not None:
            self._take(database, gpu, told)
        self._known[CPU], self._database = cpu, database
        seconds = round(time.monotonic() - begin, 2)
        log.info("worker.proved", device=self._used, wanted=self._wanted, seconds=seconds)

    def _take(self, database: Database, gpu: "Device", told: Callable[[], None]) -> None:
        from ninfer_core.selfcheck.run import processor_of

        try:
            self._require_unrefuted(database, gpu)
            self._require(self._checked(database, gpu, told), whole=True)
        except SelfCheckFailed as error:
            if self._wanted != AUTO:
                raise
            log.warning("worker.device_refused", device=gpu.name, model=gpu.model, why=str(error))
            return
        self._known[gpu.name] = gpu
        self._used, self._gpu = gpu.name, processor_of(gpu)

    def processor(self) -> "Processor":
        """Of one pass: a GPU that failed in one is asked again in the next, unless a self-check has found it wrong.

        Raises: Draining, when this worker may do no work any more: it is for others, or for nobody.
        """
        from ninfer_core.kernels.failover import FailingOver
        from ninfer_core.kernels.processor import cpu_processor

        self.look_again()
        if self.refused is not None:
            raise Draining from self.refused
        if self._gpu is None:
            return cpu_processor()
        given = FailingOver(self._gpu)
        self._given.add(given)
        return given

    def look_again(self) -> None:
        """Whether a full check has found a device wrong since it was proved, here or in another worker.

        Then it is worked on no longer, and a worker without another one is `refused`.
        """
        if self._database is None:
            return
        for device in tuple(self._known.values()):
            try:
                self._require_unrefuted(self._database, device)
            except SelfCheckFailed as error:
                self._let_go(device, error)

    def _let_go(self, device: "Device", error: SelfCheckFailed) -> None:
        if device.name == CPU or self._wanted != AUTO:
            self.refused = error
        elif self._gpu is not None:
            log.warning("worker.device_refused", device=device.name, model=device.model, why=str(error))
            self._used, self._gpu = CPU, None
        for given in tuple(self._given):
            given.leave()

    def find(self, name: str) -> "Device":
        """The device that a job names; `auto` is the one that is worked on. Raises: NoDevice."""
        from ninfer_core.kernels.devices import find_device

        name = self._used if name == AUTO else name
        # One that was worked on is known, also when it has failed since and nobody finds it any more.
        return self._known.get(name) or find_device(name)

    def _checked(
        self,
        database: Database,
        device: "Device",
        told: Callable[[], None],
        level: str = "quick",
        only: str | None = None,
    ) -> dict[str, Any]:
        found = check(device, level, 0, lambda done, total, name: told(), only).as_json()
        with database.write() as session:
            selfchecks.save(
                session, found, project_id=DEFAULT_PROJECT, id_=new_id(), worker=self.worker, job_id=None
            )
        return found

    def _require(self, found: Mapping[str, Any], *, whole: bool = False) -> None:
        """Raises: SelfCheckFailed, with `whole` also when something could not be checked."""
        bad = ("failed", "error", "not_checked") if whole else ("failed", "error")
        for outcome in bad:
            for result in found["kernels"]:
                if result["outcome"] == outcome:
                    raise SelfCheckFailed(found["device"], result, "the self-check")

    def _require_unrefuted(self, database: Database, device: "Device") -> None:
        """Raises: SelfCheckFailed when a full check found it wrong, and none has found it right since."""
        stands = self._refuted(database, device)
        if stands is not None:
            result = selfchecks.result_json(stands.result)
            raise SelfCheckFailed(device.as_json(), result, "the last full self-check")

    def _refuted(self, database: Database, device: "Device") -> evidence.Evidence | None:
        with database.read() as session:
            return evidence.refuted(session, DEFAULT_PROJECT, device.as_json())


def check(
    device: "Device",
    level: Any,
    seed: int,
    progress: Callable[[int, int, str], None],
    only: str | None = None,
) -> "SelfCheck":
    """Every kernel of a device, or the one that is named. Raises: whatever `progress` does."""
    from ninfer_core.selfcheck.run import self_check

    return self_check(device, level=level, seed=seed, timer=time.perf_counter, progress=progress, only=only)
