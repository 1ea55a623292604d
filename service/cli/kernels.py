"""`ninfer-gate kernels`: the whitelist, and what stands proved of it on this machine."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from ninfer_core.errors import Usage
from ninfer_core.kernels.devices import Device, devices
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.selfcheck.result import evidence_key
from service.cli.evidence import Kept, kept_outcomes
from service.cli.failures import Task, guarded
from service.cli.output import KERNELS_SCHEMA, JsonTarget, json_target, no_document


def kernels(json: str | None, only: str | None) -> int:
    """Print the whitelist; the exit code."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(KERNELS_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if json == "-" else None
    return guarded(
        Task("kernels", "listing the kernels", "Nothing is kept.", failed, first), lambda: _run(json, only)
    )


def _run(json: str | None, only: str | None) -> int:
    target = json_target(json)
    listed = [kernel for kernel in KERNELS if only is None or fnmatchcase(kernel.name, only)]
    if not listed:
        raise Usage(f"no kernel is called {only}")
    here, kept = devices(), kept_outcomes()
    checks = {kernel.name: _last(kernel, here, kept) for kernel in listed}
    if target is not None:
        target.write(
            {
                "schema": KERNELS_SCHEMA,
                "devices": [device.as_json() for device in here],
                "kernels": [_json(kernel, checks[kernel.name]) for kernel in listed],
            }
        )
    if target is None or not target.alone:
        _show(listed, here, checks)
    return 0


def _last(kernel: Kernel, here: Sequence[Device], kept: dict[str, Kept]) -> dict[str, Kept | None]:
    """By name of each device here that the kernel is for: the outcome that stands under today's key."""
    return {
        device.name: kept.get(evidence_key(kernel, device))
        for device in here
        if device.device_class == kernel.device_class
    }


def _json(kernel: Kernel, checks: dict[str, Kept | None]) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "operation": kernel.operation,
        "format": kernel.format.name,
        "layout": kernel.layout.name,
        "dtype": kernel.dtype,
        "regime": kernel.regime.name,
        "compute_profile": kernel.profile.name,
        "compute_profile_digest": kernel.profile.digest,
        "device_class": kernel.device_class,
        "kernel_digest": kernel.digest,
        "selfchecks": {
            name: None
            if one is None
            else {"outcome": one.outcome, "level": one.level, "checked_at": one.checked_at}
            for name, one in checks.items()
        },
    }


def _show(
    listed: Sequence[Kernel], here: Sequence[Device], checks: dict[str, dict[str, Kept | None]]
) -> None:
    from service.cli.screen import aligned, console, hanging, narrowed, show_left_out

    out = console()
    titles = ("kernel", "layout", "shapes", "compute profile", "what stands here")
    rows: list[tuple[str, ...]] = [titles]
    for kernel in listed:
        states = [_state(one) for one in checks[kernel.name].values()]
        state = "; ".join(states) if states else "no such device here"
        rows.append((kernel.name, kernel.layout.name, kernel.regime.name, kernel.profile.name, state))
    # The name is what one pastes: every other column gives way before a letter of it.
    kept, flush = narrowed(rows, (False,) * 5, out.width - 2, (1, 3, 2, 4), gap=2)
    for index, line in enumerate(aligned(kept, flush, gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None, soft_wrap=True)
    show_left_out(out, titles, kept[0])
    out.print()
    for device in here:
        out.print(
            hanging("  ", f"{device.name}: {device.model}, {device.capability}, {device.compiler}", out.width)
        )
    note = (
        "A combination that is not listed is refused. `ninfer-gate selfcheck` proves the kernels of a device."
    )
    out.print(hanging("  ", note, out.width))


def _state(kept: Kept | None) -> str:
    if kept is None:
        return "none"
    return f"{kept.outcome.replace('_', ' ')} ({kept.level}, {kept.checked_at[:10]})"
