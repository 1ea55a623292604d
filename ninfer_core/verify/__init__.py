"""Verification: checks over one artifact, one pass, one report."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ninfer_core.io import Progress, no_progress
from ninfer_core.verify.checks import CHECKS, MEANINGS, Asked, asked
from ninfer_core.verify.totals import Totals

if TYPE_CHECKING:
    from ninfer_core.opening import ArtifactKind, Opened
    from ninfer_core.verify.against import Against
    from ninfer_core.verify.report import Report


def default_checks(kind: "ArtifactKind", with_parity: bool) -> tuple[str, ...]:
    """What a person means who asks for no check in particular."""
    if kind == "safetensors":
        return ("structure", "statistics", *(("parity",) if with_parity else ()))
    return ("structure", "layout", "values", "statistics", *(("parity",) if with_parity else ()))


def verify(
    opened: "Opened",
    checks: Asked,
    against: "Against | None" = None,
    *,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> "Report":
    """Verify an opened artifact of any kind. Raises: CannotRead."""
    # Engines load the compiler, which listing and inspecting must not pay for.
    if opened.kind == "safetensors":
        from ninfer_core.verify.safetensors import verify_safetensors

        return verify_safetensors(
            opened.files, opened.entry, checks, workers=workers, started=started, progress=progress
        )
    from ninfer_core.verify.ninfer import verify_ninfer

    return verify_ninfer(
        opened.files, opened.entry, checks, against, workers=workers, started=started, progress=progress
    )


__all__ = ["CHECKS", "MEANINGS", "Asked", "Totals", "asked", "default_checks", "verify"]
