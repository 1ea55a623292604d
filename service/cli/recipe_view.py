"""A recipe for a person: what it makes, of what, and how large; or every fault of it."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ninfer_core.containers.writer import TensorSpec
from ninfer_core.convert.outline import Outline, Outlined
from ninfer_core.findings import Findings
from ninfer_core.recipes.accounting import Accounting
from ninfer_core.recipes.checks import Checks
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.recipes.trees import described
from service.cli.findings_view import count_line, show_findings
from service.cli.screen import aligned, console, hanging, narrowed, show_left_out, styled
from service.text import UNKNOWN, clean, number, plural, shape, shorten

_HEAD = ("object", "format", "layout", "shape", "bytes", "encoder", "moves", "sources")
_RIGHT = (False, False, False, True, True, False, False, False)
_LONGEST = 48  # of a cell on a terminal
_LISTED = 8
_LABEL = 13


def show(
    outline: Outline | None, name: str, findings: Findings, limit: int | None, dry_run: bool = False
) -> None:
    """Print everything; `limit` bounds the objects listed, `dry_run` says that a conversion was asked for."""
    out = console()
    refused = bool(findings.errors)
    verdict = ("recipe REFUSED", "bold red") if refused else ("recipe sound", "bold green")
    out.print(hanging("  ", name, out.width, "bold"))
    if outline is not None:
        for label, text in _facts(outline, findings):
            out.print(hanging(_label(label), text, out.width))
        out.print()
        shown = outline.objects if limit is None else outline.objects[:limit]
        if shown:
            _show_listing(out, shown)
        if len(shown) < len(outline.objects):
            more = plural(len(outline.objects) - len(shown), "more object")
            out.print(f"  … and {more}; --json FILE has them all")
        if outline.plan is not None:
            show_accounting(out, outline.plan.accounting)
    show_findings(out, findings.items, unlisted=sum(findings.unlisted.values()))
    out.print()
    if outline is not None:
        for number, open_question in enumerate(outline.not_looked_at):
            out.print(hanging(_label("" if number else "not seen"), open_question, out.width))
        out.print()
    counted = count_line(findings, findings.unlisted)
    seen = outline is not None and outline.sources_seen
    what = "its sources were looked at" if seen else "no source was looked at"
    what += "; nothing was written" if dry_run else ""
    out.print(styled("  ", verdict, f": {counted}; {what}." if counted else f": {what}."))


def show_accounting(out: Console, accounting: Accounting) -> None:
    """What became of the source tensors, by role."""
    if not accounting:
        return
    out.print()
    for role, uses in accounting.items():
        states = {
            state: [name for name, use in uses.items() if use.state == state]
            for state in ("used", "excluded", "unaccounted")
        }
        counts = ", ".join(f"{len(names):,} {state}" for state, names in states.items() if names)
        text = f"{role}: {plural(len(uses), 'tensor')}, {counts}" if counts else f"{role}: no tensors"
        out.print(hanging(_label("sources"), text, out.width))
        reasons: dict[str, list[str]] = {}
        for name in states["excluded"]:
            reasons.setdefault(uses[name].reason or "", []).append(name)
        for reason, names in reasons.items():
            out.print(hanging(f"    {clean(reason)}: ", _some(names), out.width))
        if states["unaccounted"]:
            out.print(hanging("    unaccounted: ", _some(states["unaccounted"]), out.width))


def _label(text: str) -> Text:
    return styled((f"  {text.ljust(_LABEL)}", "dim"))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if names[_LISTED:] else "")


def _facts(outline: Outline, findings: Findings) -> Iterator[tuple[str, str]]:
    recipe = outline.recipe
    yield "identity", f"{recipe.model_id} / {recipe.weights_id}   {recipe.recipe_id}"
    yield "document", recipe.digest
    if recipe.target is not None:
        yield "target", f"{recipe.target.identity}   {recipe.target.digest}"
    yield "objects", f"{len(outline.objects):,}{_by_encoder(outline.objects)}"
    for revision, size in outline.file_bytes.items():
        text = UNKNOWN if size is None else f"{size:,} bytes"
        yield f"revision {revision}", text
    yield "own checks", _own_checks(outline, findings)
    label = "restricted"
    for restriction, covered in outline.restricted:
        yield label, f"{plural(covered, 'object')}: {_restriction(restriction)}"
        label = ""


def _own_checks(outline: Outline, findings: Findings) -> str:
    """Whether the hashes and counts that the author states are those of the document as it is read here."""
    if outline.recipe.checks == Checks():
        return "none stated"
    differ = sum(1 for finding in findings if finding.code == "recipe.checks_differ")
    return "agree" if not differ else f"{number(differ)} of them {'differs' if differ == 1 else 'differ'}"


def _restriction(restriction: Restriction) -> str:
    scope = restriction.scope
    members = (("object", scope.object), ("encode", scope.encode), ("format", scope.format))
    where = ", ".join(f"{member} {value}" for member, value in members if value is not None)
    return f"{restriction.rule} ({restriction.basis}) of {where}"


def _by_encoder(objects: Sequence[Outlined]) -> str:
    counts: dict[str, int] = {}
    for item in objects:
        counts[item.encode] = counts.get(item.encode, 0) + 1
    return ": " + ", ".join(f"{count:,} {encode}" for encode, count in counts.items()) if counts else ""


def _show_listing(out: Console, objects: Sequence[Outlined]) -> None:
    rows = [list(_HEAD), *(_row(item) for item in objects)]
    right: list[bool] = list(_RIGHT)
    if out.is_terminal:
        rows = [[shorten(cell, _LONGEST) for cell in row] for row in rows]
        rows, right = narrowed(rows, right, out.width - 2, (2, 7, 6, 5, 3), gap=2)
    for index, line in enumerate(aligned(rows, right, gap=2)):
        out.print(Text(f"  {line}", "" if index else "dim"), no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, _HEAD, rows[0])


def _row(item: Outlined) -> list[str]:
    spec = item.spec
    tensor = spec if isinstance(spec, TensorSpec) else None
    moves = UNKNOWN if item.moves is None else described(item.moves)
    sources = [f"{role}:{name}" if role is not None else name for role, name in item.sources]
    return [
        clean(item.name),
        "resource" if tensor is None else tensor.format.name,
        "" if tensor is None else tensor.layout.name,
        "" if tensor is None else shape(tensor.shape),
        number(item.bytes),
        clean(item.encode) + (" (foreign)" if item.foreign else ""),
        clean(moves),
        clean(", ".join([*sources, *(f"input:{name}" for name in item.inputs if name not in sources)])),
    ]
