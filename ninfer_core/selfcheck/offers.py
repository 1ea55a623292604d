"""What foreign kernels offer, and the self-check of it: the same report, under names and digests of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ninfer_core.errors import Usage
from ninfer_core.identity import canonical_digest
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.selfcheck.foreign import Foreign
from ninfer_core.selfcheck.result import Level, NotOffered, SelfCheck
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


@dataclass(frozen=True, slots=True)
class Offers:
    """The rows of the whitelist that they do, and the names of those that they do not."""

    kernels: tuple[ForeignKernel, ...]
    left_out: tuple[str, ...]
    missing: tuple[str, ...]  # those of `left_out` that are required
    unknown: tuple[str, ...]  # names in their code that resemble a format without kernels, and are none


def offered(foreign: Foreign, only: str | None = None) -> tuple[ForeignKernel, ...]:
    """The rows of the whitelist that they do. Raises: see `offers_of`."""
    return offers_of(foreign, only).kernels


def offers_of(foreign: Foreign, only: str | None = None, require: Sequence[str] = ()) -> Offers:
    """What they do of the rows whose names match a glob; what matches one of `require` may not be missing.

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
    for glob in require:
        if not any(fnmatchcase(row.name, glob) for row in asked):
            raise Usage(f"no kernel that is asked about is called {glob}, which --require names")
    found = tuple(row for row in asked if foreign.offers(row))
    left_out = tuple(row.name for row in asked if row not in found)
    missing = tuple(name for name in left_out if any(fnmatchcase(name, glob) for glob in require))
    formats = {row.format.name for row in asked} - {row.format.name for row in found}
    unknown = foreign.names_like(formats)
    if not found and not missing:
        what = "answered every call with `unsupported`"
        if only is not None:
            names = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
            what = f"does not offer what {only} names: {names}"
        known = f"; it holds {', '.join(unknown)}, which is no name of a format" if unknown else ""
        raise Usage(f"{foreign.name} {what}: there is nothing to check{known}")
    return Offers(found, left_out, missing, unknown)


def foreign_check(
    foreign: Foreign,
    *,
    level: Level,
    seed: int,
    progress: Progress | None = None,
    only: str | None = None,
    require: Sequence[str] = (),
) -> SelfCheck:
    """Ask foreign kernels what ours are asked, and end their process. Raises: ForeignFailed, Usage."""
    try:
        offers = offers_of(foreign, only, require)
        results = check_processor(
            foreign, offers.kernels, level=level, seed=seed, timer=foreign.clock, progress=progress
        )
    finally:
        foreign.close()
    absent = NotOffered(offers.left_out, offers.missing, offers.unknown)
    return SelfCheck(level, seed, foreign.device, software(), results, absent)
