"""Targets for a person: a list, one in full, the faults of a document."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ninfer_core.findings import Finding
from ninfer_core.targets import Target, TargetObject, View, is_registered, registered_recipe
from service.cli.findings_view import count_line, show_findings
from service.cli.screen import aligned, console, fitted, hanging, narrowed, show_left_out, styled
from service.cli.targets import counts, format_name, own_checks
from service.text import UNKNOWN, clean, digest, number, plural, shape, size

_ROLES_SHOWN = 20
_RIGHT = (True, False, False, False, True)


def show_list(targets: Sequence[Target]) -> None:
    """One line a target."""
    out = console()
    rows: list[tuple[str, ...]] = [
        ("target", "revisions", "objects", "tensor bytes", "inventory", "recipe"),
        *(
            (
                clean(target.identity),
                _revisions(target),
                number(len(target.objects)),
                size(target.tensor_bytes),
                digest(target.inventory_sha256, whole=not out.is_terminal),
                clean(target.recipe_id or UNKNOWN),
            )
            for target in targets
        ),
    ]
    right = (False, False, True, True, False, False)
    kept, flush = narrowed(rows, right, out.width - 2, (5, 4, 1), gap=2)
    for index, line in enumerate(aligned(kept, flush, gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None)
    show_left_out(out, rows[0], kept[0])
    out.print()
    note = (
        "A target is named by its identity and its inventory, since forks reuse identities. `targets show NAME` lists "
        "its objects; `verify FILE --target auto` compares an artifact with the one it names."
    )
    out.print(hanging("  ", note, out.width))


def show_in_full(target: Target, limit: int | None) -> None:
    """Everything that a target says; `limit` bounds the objects listed."""
    out = console()
    out.print(hanging("  ", target.identity, out.width, "bold"))
    for label, text in _facts(target):
        out.print(hanging(Text(f"  {label.ljust(11)}", "dim"), text, out.width))
    tensors = [item for item in target.objects if item.kind == "tensor"]
    _show_counts(out, "format", counts(tensors, format_name))
    if target.components:
        _show_counts(
            out, "component", counts(target.objects, lambda item: target.component(item.name) or "none")
        )
    out.print()
    shown = target.objects if limit is None else target.objects[:limit]
    if shown:
        _show_listing(out, shown)
    if len(shown) < len(target.objects):
        out.print(
            f"  … and {plural(len(target.objects) - len(shown), 'object')} more; --json FILE has them all"
        )
    _show_roles(out, target)


def show_check(path: str, target: Target | None, findings: tuple[Finding, ...]) -> None:
    """What reading a document gave."""
    if target is None:
        show_faults(path, (), findings)
        return
    out = console()
    out.print(hanging("  ", path, out.width, "bold"))
    for label, text in _facts(target):
        out.print(hanging(Text(f"  {label.ljust(11)}", "dim"), text, out.width))
    out.print()
    stated = "its own checks agree" if target.document.get("checks") else "it states no checks of its own"
    out.print(styled("  ", ("target passed", "bold green"), f": everything fits, {stated}."))


def show_faults(path: str, found: Sequence[Target], findings: tuple[Finding, ...]) -> None:
    """Why there is no target; nothing when there is one."""
    if found:
        return
    out = console()
    out.print(hanging("  ", path, out.width, "bold"))
    show_findings(out, findings)
    out.print()
    out.print(styled("  ", ("target FAILED", "bold red"), f": {count_line(findings)}."))


def _facts(target: Target) -> Iterator[tuple[str, str]]:
    tensors = sum(item.kind == "tensor" for item in target.objects)
    resources = len(target.objects) - tensors
    yield (
        "objects",
        f"{plural(tensors, 'tensor')} of {target.tensor_bytes:,} bytes, {plural(resources, 'resource')}",
    )
    yield "inventory", f"{target.inventory_sha256}"
    yield "document", target.digest + ("   registered" if is_registered(target) else "   not registered")
    yield "revisions", _revisions(target)
    if target.recipe_id is not None:
        known = registered_recipe(target.recipe_id) is not None
        yield "recipe", f"{target.recipe_id}   {'registered' if known else 'not registered'}"
    if target.filename is not None:
        yield "file name", target.filename
    for bundle, names in target.bundles.items():
        yield "bundle", f"{bundle}: {plural(len(names), 'optional object')}, all or none"
    checks = own_checks(target)
    yield "checks", f"ordered {checks['ordered_inventory_sha256']}"
    yield "", f"tensor bytes {checks['tensor_bytes_sha256']}"
    yield "", f"views {checks['views']['sha256']}"


def _revisions(target: Target) -> str:
    return " and ".join(map(str, target.revisions))


def _show_counts(out: Console, title: str, rows: Sequence[tuple[str, int, int]]) -> None:
    out.print()
    cells = [(title, "objects", "tensor bytes"), *((clean(a), number(b), number(c)) for a, b, c in rows)]
    for index, line in enumerate(aligned(cells, (False, True, True))):
        out.print(f"  {line}", style="dim" if index == 0 else None)


def _show_listing(out: Console, objects: Sequence[TargetObject]) -> None:
    rows: list[list[str]] = [["#", "name", "format", "shape", "bytes"]]
    for ordinal, item in enumerate(objects):
        name = clean(item.name) if item.bundle is None else f"{clean(item.name)} ({clean(item.bundle)})"
        dims = shape(item.shape) if item.kind == "tensor" else ""
        rows.append([str(ordinal), name, format_name(item), dims, number(item.bytes)])
    kept, right = fitted(rows, _RIGHT, out, 1, (3, 0))
    for index, line in enumerate(aligned(kept, right, gap=2)):
        out.print(Text(f"  {line}", "" if index else "dim"), no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, rows[0], kept[0])


def _show_roles(out: Console, target: Target) -> None:
    """Views, expert banks and aliases, a few of each."""
    views = list(_by_parent(target.views))
    experts = [
        f"{view.parent}: {plural(view.experts, 'expert')} of {view.stride:,} rows: "
        + ", ".join(f"{name} [{begin}, {end})" for name, begin, end in view.parts)
        for view in target.expert_views
    ]
    aliases = [
        f"{alias.role} = {' and '.join(alias.objects)}"
        + (f" axes {list(alias.axes)}" if alias.axes is not None else "")
        + (f" rows [{alias.rows[0]}, {alias.rows[1]})" if alias.rows is not None else "")
        for alias in target.aliases
    ]
    for title, lines in (
        (f"{len(target.views):,} views", views),
        ("expert views", experts),
        ("aliases", aliases),
    ):
        if not lines:
            continue
        out.print()
        out.print(f"  {title}", style="dim")
        shown = lines[:_ROLES_SHOWN] if out.is_terminal else lines
        for line in shown:
            out.print(hanging("    ", line, out.width))
        if len(shown) < len(lines):
            out.print(f"    … and {len(lines) - len(shown):,} more; --json FILE has them all")


def _by_parent(views: Sequence[View]) -> Iterator[str]:
    """One line a parent; a role in the folder of its parent is told by its last part."""
    parts: dict[str, list[View]] = {}
    for view in views:
        parts.setdefault(view.parent, []).append(view)
    for parent, own in parts.items():
        folder = parent.rpartition("/")[0] + "/"
        roles = (
            f"{view.name.removeprefix(folder)} [{view.begin:,}, {view.end:,})"
            for view in sorted(own, key=lambda view: view.begin)
        )
        yield f"{parent}: {', '.join(roles)}"
