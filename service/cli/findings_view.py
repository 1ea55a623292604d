"""Findings for a person: grouped by object, errors first, each with its place and the next step."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ninfer_core.findings import FINDINGS, Finding
from service.cli.screen import hanging, styled
from service.text import clean, number, plural

SHOWN = 20
_STYLES = {"error": "bold red", "advisory": "yellow"}
_PLACE = ("row", "group", "lane", "column", "index", "byte", "offset", "member", "path", "rule", "role", "tensor", "file")  # fmt: skip
_LONGEST = 240
_LONGEST_PIPED = 2000  # a hostile name must not fill a log either


def show_findings(
    console: Console,
    findings: Sequence[Finding],
    describe: Callable[[str], str] = lambda _: "",
    more: str = "--json FILE has them all",
    unlisted: int = 0,
) -> None:
    """At most `SHOWN` findings; `describe` says what an object is, for the line with its name."""
    if not findings:
        return
    ordered = sorted(findings, key=lambda finding: finding.severity != "error")
    groups: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in ordered:
        groups.setdefault((finding.severity, finding.about, finding.object), []).append(finding)
    explained: set[str] = set()
    shown = 0
    for (_, about, name), group in groups.items():
        if shown >= SHOWN:
            break
        group = group[: SHOWN - shown]
        shown += len(group)
        console.print()
        console.print(_heading(about, name, describe, console.width))
        for finding in group:
            for line in _lines(finding, console.width, console.is_terminal):
                console.print(line)
        for code in dict.fromkeys(finding.code for finding in group):
            if code not in explained:
                explained.add(code)
                console.print(Text(f"    Next: ninfer-gate explain {code}", "dim"))
    if shown < len(findings):
        console.print()
        console.print(f"  … and {plural(len(findings) + unlisted - shown, 'more finding')}; {more}")


def count_line(findings: Iterable[Finding], unlisted: Mapping[str, int] | None = None) -> str:
    """`2 errors, 1 advisory`; empty without findings. `unlisted` counts more of them by code."""
    counts = Counter(finding.severity for finding in findings)
    for code, count in (unlisted or {}).items():
        counts[FINDINGS[code].severity] += count
    errors, advisories = counts["error"], counts["advisory"]
    parts = [plural(errors, "error")] if errors else []
    if advisories:
        parts.append("1 advisory" if advisories == 1 else f"{advisories:,} advisories")
    return ", ".join(parts)


def _heading(about: str, name: str | None, describe: Callable[[str], str], width: int) -> Text:
    if about != "artifact":
        # A name here is a source tensor's, or an object that the recipe makes; the artifact is not to blame.
        return styled("  ", (f"the {about}", "bold"), f"   {name}" if name is not None else "")
    if name is None:
        return styled("  ", ("the file", "bold"))
    about = f"   {describe(name)}".rstrip()
    return hanging("  ", name, width - cell_len(about), "bold").append(about)


def _lines(finding: Finding, width: int, bounded: bool) -> Iterable[Text]:
    longest = _LONGEST if bounded else _LONGEST_PIPED
    times = (
        ""
        if finding.count <= 1 or number(finding.count) in finding.message
        else f"   {finding.count:,} in all"
    )
    severity = "" if finding.severity == "error" else f"   {finding.severity}"
    yield styled("    ", (finding.code, _STYLES[finding.severity]), severity + times)
    yield hanging("      ", _bounded(finding.message, longest), width)
    missing = [
        f"{label} {_bounded(value, longest)}"
        for label, value in (("expected", finding.expected), ("found", finding.found))
        if value and value not in finding.message
    ]
    if missing:
        yield hanging("      ", ", ".join(missing), width)
    place = [f"{key} {_value(finding.where[key])}" for key in _PLACE if key in finding.where]
    place = [entry for entry in place if entry not in finding.message]
    if place:
        yield hanging(Text("      at ", "dim"), ", ".join(place), width, "dim")


def _value(value: object) -> str:
    if isinstance(value, str):
        return _bounded(value, _LONGEST)
    return number(value) if isinstance(value, int) else _bounded(json.dumps(value, default=str), _LONGEST)


def _bounded(text: str, longest: int) -> str:
    text = clean(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
