"""What a task ran, written into its outcome: which kernels on which device, and what failed over."""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from ninfer_core.kernels.processor import Failure, Processor, Produced
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.pool import Pool


class Noted(Protocol):
    """An outcome that says what made it."""

    faults: list[Fault]
    kernels: Produced


Given = ParamSpec("Given")
Outcome = TypeVar("Outcome", bound=Noted)


def recorded(pool: Pool, run: Callable[Given, Outcome], *given: Given.args, **named: Given.kwargs) -> Outcome:
    """What `run` yields, and what it ran. Raises: whatever it raises."""
    _take(pool.processor)  # what an earlier task of this thread left behind when it was stopped
    outcome = run(*given, **named)
    outcome.kernels, failures = _take(pool.processor)
    outcome.faults += [_failed_over(one) for one in failures]
    return outcome


def _take(processor: Processor) -> tuple[Produced, tuple[Failure, ...]]:
    return processor.produced(), processor.failures()


def _failed_over(failure: Failure) -> Fault:
    return Fault(
        "kernels.failed_over",
        1,
        {"device": failure.device, "kernel": failure.kernel},
        f"an answer of {failure.device}",
        failure.reason,
        f"{failure.kernel} failed on {failure.device}; the processor gave the answer instead, which is the same words",
        severity="advisory",
    )
