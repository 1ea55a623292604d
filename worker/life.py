"""The life of one worker process: it says that it lives, takes up work, looks after its peers, and ends in order."""

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.blobs import open_store
from service.lanes import BULK, INTERACTIVE
from service.queue import Queue
from service.records import workers
from service.records.database import Database
from service.settings import Settings
from worker import SIGNALS, processes
from worker.context import Context
from worker.devices import Devices
from worker.heartbeat import Heartbeat, beats
from worker.lanes import Lanes
from worker.patience import patiently
from worker.peers import Beat, Dead, Peers
from worker.preparing import Store
from worker.runtime import Engine
from worker.sessions import Sessions
from worker.sweep import Sweep, hand_on
from worker.tidy import tidy
from worker.watch import Draining, Watch

log = structlog.get_logger()

_STOP_SECONDS = 1.5  # until work that is told to stop has seen it
_LEAVE_SECONDS = 1.0
_END_SECONDS = 29.0
_SWEEP_SECONDS = 2.0
_TIDY_SECONDS = 600.0
_PEERS_SECONDS = 1.0
_PROVE_SECONDS = 600.0  # that a check may take at start, kernels compiled for the first time included


class Pulse:
    """A byte for every second in which this process lives, for the supervisor that started it; without one, nothing."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def beat(self) -> bool:
        """False once the supervisor is gone."""
        if self._descriptor is None:
            return True
        try:
            os.write(self._descriptor, b".")
        except BlockingIOError:
            return True  # it does not look just now; what it missed is no longer of interest
        except OSError:
            return False
        return True


class Life:
    """From start to end."""

    def __init__(self, settings: Settings, beat_fd: int | None) -> None:
        self.executor_id = secrets.token_hex(16)
        self._settings = settings
        self._me = processes.this_process()
        self._pulse = Pulse(beat_fd)
        self._stopping, self._launched = threading.Event(), threading.Event()
        self._database = Database(settings.records_url)
        self._devices = Devices(settings.device, self.executor_id)
        watch = Watch(self._database)
        self._context = Context(
            settings,
            Store(
                self._database,
                open_store(settings, watch.check),
                watch,
                settings.threads,
                self._devices.processor,
            ),
            Queue(settings.engine_url),
            Sessions(),
            Sessions(),
            Sessions(),
            Lanes(
                settings.threads,
                {INTERACTIVE: settings.interactive_weight, BULK: settings.bulk_weight},
            ),
            self._devices,
        )
        self._engine = Engine(
            settings.engine_url, self.executor_id, settings.threads, settings.dead_after_seconds
        )
        self._heartbeat = Heartbeat(self._database, self.executor_id, self._me, settings.heartbeat_seconds)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="peers")
        self._reading: Future[list[Beat]] | None = None
        self._peers = Peers(
            self.executor_id, self._me.machine, settings.dead_after_seconds, self._peers_seconds
        )

    @property
    def _peers_seconds(self) -> float:
        return min(_PEERS_SECONDS, self._settings.dead_after_seconds / 4)

    def run(self) -> int:
        """The exit code, when a signal or the end of the supervisor has ended it.

        Raises at start: SelfCheckFailed, NoDevice, SQLAlchemyError.
        """
        # First of all: a stopped peer may keep the database shut, and then nothing of what follows comes to an end.
        self._start("peers", self._peers_seconds, self._look_after_peers)
        try:
            self._prove()
            # Before the engine may give us work: who has work and no row is taken for dead.
            patiently(self._heartbeat.begin, self._require_staying)
        except Draining:
            return 0
        self._engine.launch(self._context)
        self._launched.set()
        self._context.watch.start()
        self._start(
            "sweep",
            min(_SWEEP_SECONDS, self._settings.dead_after_seconds / 4),
            Sweep(self._context, self._engine),
        )
        self._start("tidy", _TIDY_SECONDS, lambda: tidy(self._context))
        log.info("worker.ready", executor=self.executor_id, threads=self._settings.threads)
        while not self._stopping.wait(min(self._settings.heartbeat_seconds, 1.0)):
            if not self._heartbeat.alive:
                log.error("worker.heartbeat_ended")
                return 1
            if not self._pulse.beat():
                log.warning("worker.supervisor_gone")
                break
            if self._devices.refused is not None:
                break
        self._drain()
        if self._devices.refused is not None:
            log.error("worker.refused", why=str(self._devices.refused))
            return 2
        return 0

    def _prove(self) -> None:
        """Prove the devices before anything here may be given work. Raises: Draining, as `Devices.prove`."""
        proved = threading.Event()

        def beat() -> None:
            end = time.monotonic() + _PROVE_SECONDS
            # For some time only: should a device hang, the supervisor is to see it.
            while not proved.wait(min(self._settings.heartbeat_seconds, 1.0)) and time.monotonic() < end:
                if not self._pulse.beat():
                    self._stopping.set()

        # A thread of its own: to compile one kernel may take longer than a worker may be silent.
        threading.Thread(target=beat, name="pulse", daemon=True).start()
        try:
            patiently(
                lambda: self._devices.prove(self._database, self._require_staying), self._require_staying
            )
        finally:
            proved.set()

    def _require_staying(self) -> None:
        """Raises: Draining."""
        if self._stopping.is_set():
            raise Draining

    @property
    def well(self) -> bool:
        """Whether it has proved its device and says that it lives: others would give it up otherwise."""
        return self._heartbeat.alive and self._heartbeat.silence < self._settings.dead_after_seconds

    def stop(self) -> None:
        """End in order, soon."""
        self._stopping.set()

    def _drain(self) -> None:
        """Finish what runs, within its time; hand the rest back."""
        log.info("worker.draining")
        begin = time.monotonic()
        self._stopping.set()
        # Whatever hangs, a disk or a database: a worker that was told to end has ended then, and its peers find that.
        _at_last(_END_SECONDS, lambda: os._exit(0))
        self._context.watch.leave()
        _leave("say so", self._heartbeat.drain)
        self._engine.stop_claiming()
        idle = self._engine.wait_idle(max(0.1, begin + self._settings.drain_seconds - time.monotonic()))
        if not idle:
            self._context.watch.drain()
            idle = self._engine.wait_idle(_STOP_SECONDS)
        # What still runs after that is thrown out of the engine by the new owner of its work, as after a kill.
        _leave("hand back", lambda: self._engine.hand_back(self.executor_id))
        _leave("heartbeat", self._heartbeat.stop)
        log.info("worker.stopped", idle=idle, seconds=round(time.monotonic() - begin, 1))

    def _start(self, name: str, every: float, work: Callable[[], None]) -> None:
        def run() -> None:
            while True:
                try:
                    work()
                except SQLAlchemyError as error:
                    log.warning(f"{name}.failed", error=str(error))
                except Draining:
                    return
                except Exception:
                    log.exception(f"{name}.broke")
                if self._stopping.wait(every):
                    return

        threading.Thread(target=run, name=name, daemon=True).start()

    def _look_after_peers(self) -> None:
        rows = self._rows_of_peers()
        beating = self._heartbeat.silence <= 2 * self._settings.heartbeat_seconds + 1
        for dead in self._peers.judge(rows, beating):
            self._bury(dead)

    def _rows_of_peers(self) -> list[Beat] | None:
        """None when they cannot be read soon: a stopped worker may keep the database shut, and must be found all the same."""
        if self._reading is None:
            self._reading = self._reader.submit(beats, self._database)
        try:
            rows = self._reading.result(self._peers_seconds)
        except TimeoutError:
            return None
        except SQLAlchemyError as error:
            log.warning("peers.unread", error=str(error))
            rows = None
        self._reading = None
        return rows

    def _bury(self, dead: Dead) -> None:
        log.warning("worker.dead", executor=dead.executor_id, pid=dead.process.pid, why=dead.why)
        if dead.kill and not processes.kill(dead.process):
            log.error("worker.not_killed", executor=dead.executor_id, pid=dead.process.pid)
            return
        if dead.kill and not _gone(dead.process):
            return  # the next look finds it gone
        if not self._launched.is_set():
            return  # so does one when we can hand its work on
        process = dead.process
        why = f"{dead.why} (process {process.pid} of worker {dead.executor_id[:8]})"
        hand_on(self._context, self._engine, dead.executor_id, why)
        with self._database.write() as session:
            workers.remove(session, dead.executor_id)


def _leave(what: str, work: Callable[[], None], seconds: float = _LEAVE_SECONDS) -> None:
    """Do `work`, unless it fails or takes too long: a worker that ends without it is found dead by its peers."""

    def run() -> None:
        try:
            work()
        except Exception as error:
            log.warning("worker.left", undone=what, error=str(error), exc_info=True)

    # A thread of its own, since the engine waits for its database for as long as that is away.
    thread = threading.Thread(target=run, name="leave", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        log.warning("worker.left", undone=what, error=f"not done within {seconds:g} s")


def _at_last(seconds: float, work: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()


def _gone(process: processes.Process, seconds: float = 2.0) -> bool:
    """Whether a killed process ends within this time; until then it may still hold its locks."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = processes.look(process.pid)
        if status is None or status.ended or status.started != process.started:
            return True
        time.sleep(0.02)
    return False


def hear_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first signal that asks to end; leave at once at the second. Every thread blocks them by now.

    A thread waits for them: a handler would run in the midst of whatever the main thread does.
    """

    def run() -> None:
        number = signal.sigwait(SIGNALS)
        log.info("worker.signal", signal=signal.Signals(number).name)
        stop()
        number = signal.sigwait(SIGNALS)
        os._exit(128 + number)

    threading.Thread(target=run, name="signals", daemon=True).start()
