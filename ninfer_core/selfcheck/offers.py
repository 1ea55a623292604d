"""What foreign kernels offer, and the self-check of it: the same report, under names and digests of their own."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ninfer_core.errors import Usage
from ninfer_core.identity import canonical_digest
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.selfcheck.foreign import Foreign
from ninfer_core.selfcheck.result import Level, SelfCheck
from ninfer_core.selfcheck.run import Progress, check_processor, software


@dataclass(frozen=True, slots=True)
class ForeignKernel(Kernel):
    """A row of the whitelist, done by somebody else: the same profile, other evidence."""

    origin: str  # digest of the code, as far as it is one file

    @property
    def name(self) -> str:
        """Operation, format, words and `foreign`."""
        return f"{self.operation}.{self.format.name}.{self.dtype}.foreign"

    @property
    def digest(self) -> str:
        """Of the combination and of the code that is checked."""
        parts = (self.operation, self.format.name, self.layout.name, self.dtype, self.profile.digest)
        return canonical_digest({"foreign": [*parts, self.origin]})


def offered(foreign: Foreign, only: str | None = None) -> tuple[ForeignKernel, ...]:
    """The rows of the whitelist that they do, of those whose names match a glob.

    Raises: ForeignFailed when they cannot be loaded, Usage when there is nothing to check.
    """
    rows = [
        ForeignKernel(
            row.operation, row.format, row.layout, row.dtype, row.regime, row.profile, "cpu", foreign.origin
        )
        for row in KERNELS
        if row.device_class == "cpu" and row.operation in ("encode", "reconstruct")
    ]
    asked = [row for row in rows if only is None or fnmatchcase(row.name, only)]
    if not asked:
        raise Usage(f"no kernel that may be foreign is called {only}; one of them is {rows[0].name}")
    found = tuple(row for row in asked if foreign.offers(row))
    if not found:
        raise Usage(f"{foreign.name} answered every call with `unsupported`: there is nothing to check")
    return found


def foreign_check(
    foreign: Foreign,
    *,
    level: Level,
    seed: int,
    progress: Progress | None = None,
    only: str | None = None,
) -> SelfCheck:
    """Ask foreign kernels what ours are asked, and end their process. Raises: ForeignFailed, Usage."""
    try:
        kernels = offered(foreign, only)
        results = check_processor(
            foreign, kernels, level=level, seed=seed, timer=foreign.clock, progress=progress
        )
    finally:
        foreign.close()
    return SelfCheck(level, seed, foreign.device, software(), results)
