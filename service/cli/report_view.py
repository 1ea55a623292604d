"""A report for a person: the verdict, what was checked, what was found, the verdict again with what it rests on."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ninfer_core.formats import DIRECT
from ninfer_core.verify.checks import Outcome, Verdict
from ninfer_core.verify.report import CheckResult, ObjectResult, Report
from service.cli.findings_view import count_line, show_findings
from service.cli.screen import aligned, console, hanging, show_left_out, styled
from service.text import UNKNOWN, clean, digest, number, plural, seconds, shape, shorten, size

WORST = 10
_WIDE = 120  # columns from which names keep enough room beside four figures
_FIGURES = (
    ("max abs", "max_abs_error", ".3e"),
    ("RMSE", "rmse", ".3e"),
    ("SQNR dB", "sqnr_db", ".2f"),
    ("cosine", "cosine", ".6f"),
)
DIRECT_NAMES = frozenset(fmt.name for fmt in DIRECT)
_LABEL = len("  statistics   ")
_VERDICTS: dict[Verdict, str] = {
    "passed": "bold green",
    "failed": "bold red",
    "incomplete": "bold yellow",
    "error": "bold red",
    "cancelled": "bold yellow",
}
_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "passed": ("passed", "green"),
    "failed": ("FAILED", "bold red"),
    "not_checked": ("not checked", "yellow"),
    "not_asked": ("not asked", "dim"),
}


def show_report(report: Report, path: str, elapsed: float) -> None:
    """Print the whole report to standard output."""
    out = console()
    style = _VERDICTS[report.verdict]
    out.print(hanging(styled("  ", (report.verdict.upper(), style), "   "), path, out.width))
    out.print()
    _artifact(out, report)
    _checks(out, report)
    _parity(out, report)
    show_findings(out, report.findings, _describer(report), unlisted=sum(report.unlisted.values()))
    out.print()
    end = styled("  ", (report.verdict.upper(), style), " ")
    out.print(hanging(end, f"in {seconds(elapsed)}; {_rests_on(report)}.", out.width))


def _artifact(out: Console, report: Report) -> None:
    named = "no digest taken" if report.stored is not None else digest(report.digest, not out.is_terminal)
    parts = [named, size(report.bytes)]
    parts.append(f"revision {report.revision}" if report.revision is not None else report.kind)
    identity = " / ".join(part for part in (report.model_id, report.weights_id) if part) or report.name
    if identity:
        parts.append(identity)
    if len(report.files) > 1:
        parts.append(plural(len(report.files), "file"))
    out.print(hanging("  artifact     ", "   ".join(parts), out.width))
    if report.recipe is not None:
        recipe = digest(str(report.recipe.get("digest")), whole=not out.is_terminal)
        out.print(hanging("  recipe       ", f"{recipe}   {report.recipe.get('recipe_id', '')}", out.width))
    if report.target is not None:
        target = digest(str(report.target["digest"]), whole=not out.is_terminal)
        named = f"{report.target['model_id']} / {report.target['weights_id']}"
        known = "" if report.target["registered"] else "   not a registered one"
        out.print(hanging("  target       ", f"{target}   {named}{known}", out.width))
    evidence = Counter(item.evidence for item in report.objects if item.evidence is not None)
    sampled = sum(1 for item in report.objects if item.coverage == "sampled")
    if evidence or sampled:
        counted = [f"{count:,} {kind}" for kind, count in sorted(evidence.items())]
        counted += [f"{sampled:,} sampled, which is no evidence"] if sampled else []
        text = f"{', '.join(counted)}; of {plural(len(report.objects), 'object')}"
        out.print(hanging("  evidence     ", text, out.width))
    if report.sample is not None:
        out.print(hanging("  sample       ", _sample(report.sample), out.width))


def _sample(sample: Mapping[str, Any]) -> str:
    """How much was compared, and what such a sample finds."""
    found = {name: _chance(value) for name, value in sample["detects"].items()}
    return (
        f"{sample['rows']:,} of {sample['of_rows']:,} rows, seed {sample['seed']}; it finds one wrong row in all with "
        f"{found['one_row']}, 1 in 1,000 with {found['one_permille']}, 1 in 100 with {found['one_percent']}"
    )


def _chance(probability: float) -> str:
    return "over 99.99%" if 0.9999 < probability < 1 else f"{probability:.2%}"


def _checks(out: Console, report: Report) -> None:
    rows = []
    for check in report.checks:
        ran = check.outcome != "not_asked"
        counted = ran and check.name != "source"  # which is about files, not about objects
        counts = (_counted(check, report), size(check.bytes)) if counted else ("", "")
        rows.append((check.name, _word(check)[0], *counts, clean(check.reason or "")))
    lines = aligned([row[:-1] for row in rows], (False, False, True, True))
    width = max(map(len, lines))
    for check, line, (*_, reason) in zip(report.checks, lines, rows, strict=True):
        text = Text(f"  {line}")
        word, style = _word(check)
        text.stylize(style, _LABEL, _LABEL + len(word))
        if reason and width + len(reason) + 5 <= out.width:
            out.print(text.append(" " * (width - len(line) + 3) + reason))
            continue
        out.print(text)
        if reason:
            out.print(hanging(" " * _LABEL, reason, out.width))


def _word(check: CheckResult) -> tuple[str, str]:
    """The outcome, and where it passed on less than today's bytes, on what."""
    if check.outcome == "not_checked" and check.coverage == "partial":
        return "partly", _OUTCOMES["not_checked"][1]
    if check.outcome == "passed" and check.coverage in ("sampled", "reused"):
        return check.coverage, "yellow" if check.coverage == "sampled" else "cyan"
    return _OUTCOMES[check.outcome]


def _counted(check: CheckResult, report: Report) -> str:
    concerned = sum(1 for item in report.objects if check.name in item.concerns)
    if check.objects == concerned:
        return plural(check.objects, "object")
    return f"{check.objects:,} of {plural(concerned, 'object')}"


def _parity(out: Console, report: Report) -> None:
    compared = [item for item in report.objects if "error" in item.metrics]
    if not compared:
        return
    lossy = sorted(
        (item for item in compared if item.metrics["error"]["sqnr_db"] is not None),
        key=lambda item: (item.metrics["error"]["sqnr_db"], item.ordinal),
    )
    exact = sum(1 for item in compared if _is_exact(item))
    rest = len(compared) - len(lossy) - exact
    out.print()
    source = "source" if report.sample is None else "source, on the sampled rows alone"
    parts = [f"{plural(len(compared), 'tensor')} compared with the {source}", f"{exact:,} without any error"]
    if rest:
        parts.append(f"{rest:,} without a defined ratio")
    worst = f"; the noisiest of {len(lossy):,}:" if len(lossy) > WORST else "; the others, noisiest first:"
    out.print(hanging("  ", f"{', '.join(parts)}{worst if lossy else '.'}", out.width))
    if not lossy:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    # Where the window is narrow only the name gives way, in its middle: numbers stay whole.
    figures = _FIGURES if not out.is_terminal or out.width >= _WIDE else _FIGURES[2:]
    fixed = 76 if figures is _FIGURES else 46
    room = max(16, out.width - fixed) if out.is_terminal else out.width
    table.add_column("  object", no_wrap=True, max_width=room)
    table.add_column("format", no_wrap=True)
    for title, _, _ in figures:
        table.add_column(title, no_wrap=True, justify="right")
    for item in lossy[:WORST]:
        error = item.metrics["error"]
        table.add_row(
            "  " + shorten(clean(item.name), room - 2),
            clean(item.format or UNKNOWN),
            *(_figure(error[member], spec) for _, member, spec in figures),
        )
    out.print(table)
    show_left_out(out, [title for title, _, _ in _FIGURES], [title for title, _, _ in figures])


def _is_exact(item: ObjectResult) -> bool:
    # Integers have no error ratio, and a NaN that was moved as it is has none either: equal words are exact.
    reason = item.metrics["error"]["undefined"].get("sqnr_db")
    return reason == "there is no error" or (item.evidence is not None and item.format in DIRECT_NAMES)


def _figure(value: float | None, spec: str) -> str:
    return UNKNOWN if value is None else format(value, spec)


def _describer(report: Report) -> Callable[[str], str]:
    by_name: dict[str, ObjectResult] = {item.name: item for item in report.objects}

    def describe(name: str) -> str:
        item = by_name.get(name)
        if item is None:
            return ""
        if item.kind != "tensor":
            return f"{item.kind or 'object'}   {size(item.bytes)}"
        return f"{item.format or UNKNOWN} {shape(item.shape)}   {size(item.bytes)}"

    return describe


def _rests_on(report: Report) -> str:
    parts = [found] if (found := count_line(report.findings, report.unlisted)) else []
    open_checks = [
        check.name
        for check in report.checks
        if check.outcome == "not_checked"
        or (check.outcome == "failed" and check.coverage in ("partial", "none"))
    ]
    for extent, what in (("sampled", "on a sample only"), ("reused", "taken over from an earlier run")):
        names = [check.name for check in report.checks if check.coverage == extent]
        if names:
            parts.append(f"{', '.join(names)} {what}")
    if open_checks:
        parts.append(f"not wholly checked: {', '.join(open_checks)}")
    else:
        left_out = [check.name for check in report.checks if check.outcome == "not_asked"]
        open_objects = sum(1 for item in report.objects if item.coverage == "none")
        if open_objects:
            parts.append(
                f"{number(open_objects)} of {plural(len(report.objects), 'object')} not wholly checked"
            )
        elif left_out:
            parts.append(f"nothing left unchecked of what was asked ({', '.join(left_out)} not asked)")
        else:
            parts.append("nothing left unchecked")
    return "; ".join(parts)
