"""Puts the questions to a processor and says, of each kernel, what came of it. No clock: a timer is passed in.

Every kernel is asked on its own, whatever became of the others. What a kernel raises is its outcome, not ours.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from ninfer_core import __version__
from ninfer_core.compute import Operation
from ninfer_core.errors import NinferError, Usage
from ninfer_core.kernels.devices import Device
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.selfcheck.checking import check_questions
from ninfer_core.selfcheck.consuming import matvec_questions
from ninfer_core.selfcheck.counting import parity_questions, statistics_questions
from ninfer_core.selfcheck.drawn import Random
from ninfer_core.selfcheck.encoding import encode_questions
from ninfer_core.selfcheck.huge import huge_question
from ninfer_core.selfcheck.memory import TooLittleMemory
from ninfer_core.selfcheck.questions import Answer, Depth, Question, Verdict, compare, same
from ninfer_core.selfcheck.rates import Timer, copy_rate, rate_of
from ninfer_core.selfcheck.reconstruction import reconstruct_questions
from ninfer_core.selfcheck.result import FirstMismatch, KernelResult, Level, SelfCheck

Progress = Callable[[int, int, str], None]
"""Kernels done, kernels in all, and the name of the one that comes next ("" at the end)."""

DEPTHS: Final[dict[str, Depth]] = {
    "quick": Depth(weights=4_000, every_word=False, runs=5),
    "full": Depth(weights=1_000_000, every_word=True, runs=50),
}
_SLOW: Final = 10.0  # seconds after which the largest question is repeated
_FEWEST: Final = 10  # times at most
_QUESTIONS: Final[dict[Operation, Callable[[Kernel, Random, Depth], Iterator[Question]]]] = {
    "encode": encode_questions,
    "reconstruct": reconstruct_questions,
    "check": check_questions,
    "statistics": statistics_questions,
    "parity": parity_questions,
    "matvec": matvec_questions,
}


def check_processor(
    processor: Any,
    kernels: Sequence[Kernel],
    *,
    level: Level,
    seed: int,
    timer: Timer,
    progress: Progress | None = None,
) -> tuple[KernelResult, ...]:
    """Ask a processor about some kernels; it needs the methods that these kernels stand for, and no others.

    `timer` counts seconds. At level `full` throughput is measured, and a matrix beyond 2**31 elements is asked about.
    """
    tell = progress or (lambda done, total, name: None)
    copies = copy_rate(processor, timer) if level == "full" else None
    results = []
    for done, kernel in enumerate(kernels):
        tell(done, len(kernels), kernel.name)
        results.append(_Examination(kernel, processor).result(level, seed, timer, copies))
    tell(len(kernels), len(kernels), "")
    return tuple(results)


class _Examination:
    """What has been found of one kernel so far."""

    def __init__(self, kernel: Kernel, processor: Any) -> None:
        self._kernel, self._processor = kernel, processor
        self._cases = self._values = self._mismatches = 0
        self._first: FirstMismatch | None = None
        self._runs = self._equal = 0
        self._case = ""  # the one that was put last

    def result(self, level: Level, seed: int, timer: Timer, copies: float | None) -> KernelResult:
        """Ask everything; throughput is left out where the answers are wrong."""
        depth = DEPTHS[level]
        random = np.random.default_rng(
            [seed, *self._kernel.name.encode()]
        )  # each kernel its own, in any order
        question, rate, missing = None, None, None
        largest: tuple[Question, Answer] | None = None
        try:
            for question in _QUESTIONS[self._kernel.operation](self._kernel, random, depth):
                answer = self._put(question)
                if largest is None or question.bytes >= largest[0].bytes:
                    largest = question, answer
            if question is None or largest is None:
                raise ValueError("no question was asked")
            self._repeat(*largest, depth.runs, timer)
            if level == "full" and not self._mismatches:
                rate = rate_of(self._processor, question, timer)
                missing = self._beyond()
        except MemoryError:
            missing = "there is too little memory for its questions"
        except Exception as error:  # noqa: BLE001  a kernel of any kind may raise anything; that is the answer
            what = str(error) if isinstance(error, NinferError) else f"{type(error).__name__}: {error}"
            return self._ended("error", f"{self._case}: {what}" if self._case else what)
        if self._mismatches or self._equal < self._runs:
            return self._ended(
                "failed", None if self._mismatches else "the same question had different answers"
            )
        if missing is not None:
            return self._ended("not_checked", missing, rate, copies)
        return self._ended("passed", None, rate, copies)

    def _put(self, question: Question) -> Answer:
        self._case = question.name
        answer = question.ask(self._processor)
        self._note(question.name, question.judge(answer), question.why)
        return answer

    def _note(self, case: str, verdict: Verdict, why: Callable[[int], str] | None = None) -> None:
        self._cases += 1
        self._values += verdict.values
        self._mismatches += verdict.mismatches
        if self._first is None and verdict.first is not None:
            first = verdict.first
            self._first = FirstMismatch(
                case, first.where, first.expected, first.found, why(first.row) or None if why else None
            )

    def _repeat(self, question: Question, first: Answer, runs: int, timer: Timer) -> None:
        """Ask again what has been answered and judged; an answer of other bits is wrong, whichever it is."""
        begin, self._runs, self._equal = timer(), 1, 1
        self._case = question.name
        while self._runs < runs and (self._runs < _FEWEST or timer() - begin < _SLOW):
            again = question.ask(self._processor)
            self._runs += 1
            if same(first, again):
                self._equal += 1
            else:
                self._note(f"{question.name}, time {self._runs}", compare(first, again))

    def _beyond(self) -> str | None:
        """Ask a kernel of ours about more than 2**31 elements; why that could not be, where it could not."""
        if self._kernel.name not in KERNELS:
            return None
        if self._processor.device.simulated:
            return "not checked beyond 2**31 elements: a simulator would take days"
        try:
            self._put(huge_question(self._kernel))
        except TooLittleMemory as error:
            return str(error)
        except MemoryError:
            return "not checked beyond 2**31 elements: there is too little memory"
        return None

    def _ended(
        self, outcome: Any, reason: str | None, rate: float | None = None, copies: float | None = None
    ) -> KernelResult:
        return KernelResult(
            self._kernel,
            outcome,
            reason,
            self._cases,
            self._values,
            self._mismatches,
            self._first,
            self._runs,
            self._equal,
            rate,
            rate / copies if rate is not None and copies else None,
        )


def chosen(device: Device, only: str | None = None) -> tuple[Kernel, ...]:
    """The kernels of a device's class whose names match a glob."""
    return tuple(
        kernel
        for kernel in KERNELS
        if kernel.device_class == device.device_class and (only is None or fnmatchcase(kernel.name, only))
    )


def self_check(
    device: Device,
    *,
    level: Level,
    seed: int,
    timer: Timer,
    progress: Progress | None = None,
    only: str | None = None,
) -> SelfCheck:
    """Prove the kernels of a device on that device. Raises: Usage, when `only` names none of them."""
    kernels = chosen(device, only)
    if not kernels:
        raise Usage(f"no kernel of a device of class {device.device_class} is called {only}")
    results = check_processor(
        processor_of(device), kernels, level=level, seed=seed, timer=timer, progress=progress
    )
    return SelfCheck(level, seed, device, software(), results)


def processor_of(device: Device) -> Any:
    """The processor that runs kernels on a device, and on nothing else: no failing over in a self-check."""
    if device.device_class == "cpu":
        from ninfer_core.kernels.processor import cpu_processor

        return cpu_processor()
    from ninfer_core.kernels.gpu import Gpu

    return Gpu(device)


def software() -> dict[str, str]:
    """Versions of what a self-check rests on."""
    return {
        "ninfer-gate": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "llvmlite": version("llvmlite"),
    }
