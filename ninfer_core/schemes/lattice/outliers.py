"""The sparse part of SpQR: outliers by row, and the order of the inputs that they and the tiles are stored in."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Parts, Shape
from ninfer_core.schemes.lattice.order import check_permutation, unsigned
from ninfer_core.schemes.run import Refusal

OFFSETS: Final = "row_offsets"
OUTLIERS: Final = "col_vals"
ORDER: Final = "in_perm"


def _split(parts: Parts) -> tuple[NDArray[np.uint32], NDArray[np.float16]]:
    """Columns and values."""
    words = np.ascontiguousarray(parts[OUTLIERS]).view(np.uint32)
    return words & np.uint32(0xFFFF), (words >> np.uint32(16)).astype(np.uint16).view(np.float16)


def _check_offsets(parts: Parts, refusal: Refusal) -> None:
    outliers = parts[OUTLIERS]
    if outliers.ndim != 1:
        shape = list(outliers.shape)
        refusal.add("part_shape", f"{OUTLIERS} has one dimension", "[outliers]", shape, part=OUTLIERS)
        return
    offsets = parts[OFFSETS].astype(np.int64)
    falls = np.zeros(offsets.shape, np.bool_)
    falls[0] = offsets[0] != 0
    falls[1:] = offsets[1:] < offsets[:-1]
    report(
        refusal.findings, "outliers_out_of_order", OFFSETS, falls, parts[OFFSETS], "falls", "rising from zero"
    )
    if int(offsets[-1]) != outliers.size:
        message = f"{OFFSETS} ends at another number than {OUTLIERS} holds"
        refusal.add("redundant_differs", message, outliers.size, int(offsets[-1]), part=OFFSETS)


def _check_places(parts: Parts, shape: Shape, findings: Findings) -> None:
    columns, _ = _split(parts)
    message = "points to a column that does not exist"
    report(
        findings,
        "index_out_of_range",
        OUTLIERS,
        columns >= shape[1],
        parts[OUTLIERS],
        message,
        f"below {shape[1]}",
        limit=shape[1],
    )
    if ORDER in parts:
        check_permutation(ORDER, parts[ORDER], findings)


def refuse_outliers(form: str, parts: Parts, shape: Shape) -> None:
    """Raises: SchemeRefused where the outliers or the order of the inputs name places that do not exist."""
    refusal = Refusal(form)
    _check_offsets(parts, refusal)
    refusal.settle()
    _check_places(parts, shape, refusal.findings)
    refusal.settle()


def check_outliers(parts: Parts, shape: Shape, findings: Findings) -> None:
    """Findings about places, about columns of a row that do not rise strictly, and about values that are not finite."""
    refusal = Refusal("spqr")
    _check_offsets(parts, refusal)
    findings.extend(refusal.findings)
    if refusal.findings.items:
        return  # without rows there is no order within them
    _check_places(parts, shape, findings)
    columns, values = _split(parts)
    rows = _rows(parts)
    repeats = np.zeros(columns.shape, np.bool_)
    repeats[1:] = (rows[1:] == rows[:-1]) & (columns[1:] <= columns[:-1])
    message = "does not rise within its row"
    report(
        findings,
        "outliers_out_of_order",
        OUTLIERS,
        repeats,
        parts[OUTLIERS],
        message,
        "rising columns in a row",
    )
    infinite = ~np.isfinite(values)
    message = "holds NaN or infinity"
    report(findings, "value_not_finite", OUTLIERS, infinite, parts[OUTLIERS], message, "a finite number")


def _rows(parts: Parts) -> NDArray[np.int64]:
    offsets = parts[OFFSETS].astype(np.int64)
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))


def permuted(parts: Parts, values: NDArray[np.float16]) -> NDArray[Any]:
    """`values` with the outliers added, rounded each time, and with the columns in the order of the inputs."""
    columns, added = _split(parts)
    np.add.at(values, (_rows(parts), columns), added)
    if ORDER not in parts:
        return values
    restored = np.empty_like(values)
    restored[:, unsigned(parts[ORDER])] = values
    return restored
