"""How and on what a conversion runs, for its record: the command with roles and names for paths, versions, the class of machine."""

import os
import platform
import shlex
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from ninfer_core.provenance import versions_of
from ninfer_core.recipes import Plan

_CPU: Final = "/proc/cpuinfo"
_PACKAGES: Final = ("numba", "llvmlite", "numpy")


def command(plan: Plan, output: Mapping[str, Any]) -> str:
    """What would make the same artifact on the command line, with roles and names of inputs for the paths."""
    options = [("--recipe", plan.recipe.recipe_id)]
    if plan.target is not None:
        options.append(("--target", plan.target.identity))
    options += [("--checkpoint", f"{role}=DIR") for role in plan.recipe.sources]
    options += [("--input", f"{name}=FILE") for name in plan.recipe.inputs]
    options += [("--out", output["name"]), ("--revision", str(output["revision"]))]
    if output.get("max_file_bytes") is not None:
        options.append(("--max-file-bytes", str(output["max_file_bytes"])))
    return shlex.join(["ninfer-gate", "convert", *chain.from_iterable(options)])


def host_class() -> dict[str, Any]:
    """The class of this machine; never its name or that of a user."""
    return {"cpu": _cpu_model(), "cores": os.cpu_count()}


def environment() -> dict[str, str]:
    """Versions of what computes here."""
    return versions_of(_PACKAGES)


def _cpu_model() -> str:
    try:
        with open(_CPU, encoding="ascii", errors="replace") as lines:
            names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(names, "") or platform.processor()
    except OSError:
        return platform.processor()
