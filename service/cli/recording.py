"""The provenance record that `convert` writes beside its output: which files are hashed for it, and what it says."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ninfer_core.convert import Conversion, Record
from ninfer_core.identity import FileDigest
from ninfer_core.provenance import Circumstances, Read, canonical, provenance_record
from ninfer_core.recipes import Plan
from service import circumstances
from service.cli.output import RECORD_SUFFIX


def recorded(plan: Plan, out: Path, output: Mapping[str, Any], begin: float) -> Record:
    """The record of a conversion that began at `begin` (monotonic); `output` is what it writes, as a job would ask."""
    sources = {role: tuple(opened.values()) for role, opened in plan.read.items()}
    files = [*(file for opened in sources.values() for file in opened), *plan.inputs.values()]

    def make(conversion: Conversion, digests: Sequence[FileDigest]) -> bytes:
        rest = iter(digests)
        read = Read(
            {role: [next(rest) for _ in opened] for role, opened in sources.items()},
            {name: next(rest) for name in plan.inputs},
        )
        how = Circumstances(
            circumstances.command(plan, output),
            circumstances.environment(),
            circumstances.host_class(),
            time.monotonic() - begin,
        )
        return canonical(provenance_record(plan, conversion, read, how))

    return Record(out.with_name(out.name + RECORD_SUFFIX), files, make)
