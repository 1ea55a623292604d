"""A comparison for a person: both artifacts, objects by what became of them, the worst first, and whether it matters."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ninfer_core.compare.comparison import STATUSES, Compares, Comparison, ObjectComparison, Verdict, totals
from ninfer_core.compare.facts import MOST, Facts
from ninfer_core.compare.summary import summary
from ninfer_core.containers.directory import ArtifactObject, BrokenObject, TensorObject
from service.cli.findings_view import show_findings
from service.cli.screen import NAME_WANTED, aligned, console, fitted, hanging, narrowed, show_left_out, styled
from service.text import UNKNOWN, clean, digest, number, plural, seconds, shorten, size

_FACT_WANTED = 60  # characters of the name of a fact
_NOT_STATED = "not stated"
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "identical": ("IDENTICAL", "bold green"),
    "different": ("DIFFERENT", "bold yellow"),
    "incomplete": ("INCOMPLETE", "bold red"),
}
STYLES = {
    "unreadable": "bold red",
    "removed": "red",
    "added": "cyan",
    "changed": "yellow",
    "re-encoded": "yellow",
    "re-packed": "",
    "identical": "green",
}
_TITLES = ("object", "status", "format", "changed", "NMSE", "max abs", "SQNR dB", "bytes")
_RIGHT = (False, False, False, True, True, True, True, True)
_NAME, _STATUS = 0, 1
_SPARE = (7, 5, 4, 3, 2)  # the columns that a narrow window does without, in this order


def show_comparison(comparison: Comparison, paths: tuple[str, str], elapsed: float, most: int | None) -> None:
    """Print the whole comparison to standard output; `most` bounds the objects listed, None lists identical ones too."""
    out = console()
    word, style = _VERDICTS[comparison.verdict]
    out.print(styled("  ", (word, style)))
    out.print()
    for side, path, whole in zip("AB", paths, (comparison.a, comparison.b), strict=True):
        _artifact(out, side, path, whole)
    _facts(out, comparison.facts, most)
    _counts(out, comparison)
    _listing(out, comparison, most)
    for side, whole in zip("AB", (comparison.a, comparison.b), strict=True):
        if whole.findings:
            out.print()
            out.print(styled("  ", (f"Findings of {side}", "bold")))
            show_findings(out, whole.findings, unlisted=sum(whole.unlisted.values()))
    out.print()
    end = styled("  ", (word, style), " ")
    out.print(hanging(end, f"in {seconds(elapsed)}; {summary(comparison)}.", out.width))


def _artifact(out: Console, side: str, path: str, whole: Compares) -> None:
    parts = [digest(whole.digest, whole=not out.is_terminal), size(whole.bytes)]
    if whole.revision is not None:
        parts.append(f"revision {whole.revision}")
    identity = " / ".join(part for part in (whole.model_id, whole.weights_id) if part) or whole.name
    if identity:
        parts.append(identity)
    if len(whole.files) > 1:
        parts.append(plural(len(whole.files), "file"))
    out.print(hanging(styled("  ", (side, "bold"), "   "), path, out.width))
    out.print(hanging("      ", "   ".join(parts), out.width))
    out.print(hanging("      content ", digest(whole.content_root, whole=not out.is_terminal), out.width))


def _facts(out: Console, facts: Facts, most: int | None) -> None:
    if not facts.listed:
        return
    out.print()
    out.print(styled("  ", ("What the directories say beside the objects", "bold")))
    shown = facts.listed if most is None else facts.listed[: max(1, most)]
    for fact in shown:
        values = " → ".join(_NOT_STATED if value is None else value for value in (fact.a, fact.b))
        note = "" if fact.decides else "  (decides nothing)"
        style = "yellow" if fact.decides else ""
        lead = styled("  ", (shorten(clean(fact.name), _FACT_WANTED), style), "  ")
        out.print(hanging(lead, f"{values}{note}", out.width))
    more = len(facts.listed) + facts.unlisted - len(shown)
    if more:
        out.print(f"  … and {plural(more, 'difference')} more; --json FILE has the first {MOST:,}")


def _counts(out: Console, comparison: Comparison) -> None:
    counted = totals(comparison.objects)
    rows = [("status", "objects", "bytes in A", "bytes in B", "")]
    for status, meaning in STATUSES.items():
        if counted["objects"][status]:
            a, b = counted["a_bytes"][status], counted["b_bytes"][status]
            rows.append((status, number(counted["objects"][status]), size(a), size(b), meaning))
    if len(rows) == 1:
        return
    out.print()
    kept, right = narrowed(rows, (False, True, True, True, False), out.width - 2, (4,))
    for index, line in enumerate(aligned(kept, right)):
        text = Text(f"  {line}", "" if index else "dim")
        if index:
            text.stylize(STYLES[rows[index][0]], 2, 2 + len(rows[index][0]))
        out.print(text)


def _listing(out: Console, comparison: Comparison, most: int | None) -> None:
    worst = comparison.worst()
    if most is not None:
        worst = [item for item in worst if item.status != "identical"]
    shown = worst if most is None else worst[:most]
    if shown:
        out.print()
        _show_lines(out, shown)
        for name, note in _notes(shown):
            out.print(
                hanging(styled("  ", (f"{shorten(clean(name), NAME_WANTED)}: ", "dim")), note, out.width)
            )
    if len(shown) < len(worst):
        more = plural(len(worst) - len(shown), "object")
        out.print(f"  … and {more} more; --worst N shows more, --json FILE has them all")


def _show_lines(out: Console, shown: Sequence[ObjectComparison]) -> None:
    rows = [list(_TITLES), *([*_row(item)] for item in shown)]
    rows, right = fitted(rows, _RIGHT, out, _NAME, _SPARE)
    lines = aligned(rows, right, gap=2)
    printed = [Text(f"  {lines[0]}", "dim")]
    start = 4 + max(cell_len(row[_NAME]) for row in rows)
    for item, line in zip(shown, lines[1:], strict=True):
        text = Text(f"  {line}")
        text.stylize(STYLES[item.status], start, start + len(item.status))
        printed.append(text)
    for text in printed:
        out.print(text, no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, _TITLES, rows[0])


def _notes(shown: Sequence[ObjectComparison]) -> Iterator[tuple[str, str]]:
    """Name and what figures do not say."""
    for item in shown:
        if item.same_content_as is not None:
            other = "B" if item.status == "removed" else "A"
            yield item.name, f"has the same content as {item.same_content_as} of {other}"
        elif item.reason is not None:
            yield item.name, item.reason
        elif item.status in ("changed", "re-encoded") and item.nmse is None:
            yield item.name, item.metrics["undefined"]["nmse"]


def _row(item: ObjectComparison) -> Iterator[str]:
    metrics = item.metrics
    share = metrics.get("changed_share")
    yield clean(item.name)
    yield item.status
    yield " → ".join(dict.fromkeys(_format(one) for one in (item.a, item.b) if one is not None))
    yield "" if item.status == "identical" else UNKNOWN if share is None else percent(share)
    for name, spec in (("nmse", ".2e"), ("max_abs_error", ".2e"), ("sqnr_db", ".2f")):
        exact = name == "sqnr_db" and metrics.get("max_abs_error") == 0
        yield "" if item.status == "identical" else "exact" if exact else _figure(metrics.get(name), spec)
    yield number(item.bytes)


def _figure(value: float | None, spec: str) -> str:
    # A ratio just below one would be shown as minus nothing.
    return UNKNOWN if value is None else format(round(value, 2) + 0.0 if spec == ".2f" else value, spec)


def percent(share: float) -> str:
    """A share of words; what is not none is never shown as none, nor what is not all as all."""
    if 0 < share < 0.0001:
        return "<0.01 %"
    if 0.9999 < share < 1:
        return ">99.99 %"
    return f"{100 * share:.2f} %"


def _format(item: ArtifactObject) -> str:
    match item:
        case TensorObject():
            return item.format.name
        case BrokenObject():
            return clean(item.format or UNKNOWN)
    return "resource"
