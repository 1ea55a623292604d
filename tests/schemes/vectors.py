"""The stored vectors of the schemes, case by case; nothing here writes."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Form

FOLDER = Path(__file__).parents[1] / "vectors" / "schemes"


@dataclass(frozen=True)
class Case:
    """One stored tensor: what the file says about it, and its arrays by name, read-only."""

    name: str
    params: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


@cache
def stated(scheme: str) -> dict[str, Any]:
    """What a set of vectors says about itself."""
    document: dict[str, Any] = json.loads((FOLDER / f"{scheme}.json").read_text())
    return document


@cache
def cases(scheme: str) -> tuple[Case, ...]:
    """Every case of a set of vectors."""
    with np.load(FOLDER / f"{scheme}.npz") as stored:
        found = []
        for one in stated(scheme)["cases"]:
            arrays = {name: stored[f"{one['case']}/{name}"] for name in one["arrays"]}
            for array in arrays.values():
                array.flags.writeable = False  # one test does not change what the next one sees
            found.append(Case(one["case"], one.get("params", {}), arrays))
    return tuple(found)


def parts_of(form: Form, case: Case) -> dict[str, NDArray[Any]]:
    """The arrays of a case that are parts of a form."""
    return {part.name: case.arrays[part.name] for part in form.parts}
