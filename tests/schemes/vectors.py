"""The stored vectors of the schemes, case by case; nothing here writes."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parents[1] / "vectors" / "schemes"


@dataclass(frozen=True)
class Case:
    """One stored tensor: what the file says about it, and its arrays by name, read-only."""

    name: str
    params: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


@cache
def cases(scheme: str) -> tuple[Case, ...]:
    """Every case of a set of vectors."""
    stated = json.loads((HERE / f"{scheme}.json").read_text())["cases"]
    with np.load(HERE / f"{scheme}.npz") as stored:
        found = []
        for one in stated:
            arrays = {name: stored[f"{one['case']}/{name}"] for name in one["arrays"]}
            for array in arrays.values():
                array.flags.writeable = False  # one test does not change what the next one sees
            found.append(Case(one["case"], one.get("params", {}), arrays))
    return tuple(found)
