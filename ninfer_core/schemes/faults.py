"""Words at fault in a stored array: where the first one stands, and how many there are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings

Mask = NDArray[np.bool_]


def report(
    findings: Findings,
    slug: str,
    part: str,
    at_fault: Mask,
    array: NDArray[Any],
    message: str,
    expected: object,
    **where: Any,
) -> None:
    """One finding `scheme.<slug>` for all words of `array` where `at_fault`, at the first of them in storage order.

    `message` follows the name of the part. A place is a number in a flat array and a list of numbers in others.
    """
    count = int(np.count_nonzero(at_fault))
    if not count:
        return
    place = [int(n) for n in np.unravel_index(int(np.argmax(at_fault)), at_fault.shape)]
    found = array[tuple(place)]
    index = place[0] if len(place) == 1 else place
    findings.add(
        f"scheme.{slug}",
        f"{part} {message}: {count:,} of {at_fault.size:,}",
        where={"part": part, "index": index, "word": word_of(found), **where},
        expected=expected,
        found=found,
        count=count,
    )


def word_of(value: Any) -> int:
    """The bits of one stored number, as an unsigned integer."""
    return int.from_bytes(np.asarray(value).tobytes(), "little")


def report_not_finite(findings: Findings, slug: str, part: str, array: NDArray[Any]) -> None:
    """The finding about numbers of a floating-point array that are NaN or infinite."""
    report(findings, slug, part, ~np.isfinite(array), array, "holds NaN or infinity", "a finite number")
