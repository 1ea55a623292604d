"""The answer about stored arrays for a person: verdict, coverage, measures, findings."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ninfer_core.schemes.checking import Checked
from ninfer_core.schemes.dialects import CONTRADICTED
from ninfer_core.schemes.measures import Measures
from service.cli.findings_view import count_line, show_findings
from service.cli.schemes_view import value_word
from service.cli.screen import console, hanging, styled
from service.text import UNKNOWN, clean, number, plural, seconds, shape, size

_STYLES = {"passed": "bold green", "FAILED": "bold red"}


def show_checked(checked: Checked, beside: tuple[str, ...], behind: tuple[str, ...], elapsed: float) -> None:
    """One screen: what was looked at, what was found, and the verdict at the end."""
    out = console()
    stored = sum(part.bytes for part in checked.parts.values())
    out.print(styled("  ", (checked.form.name, "bold"), f"   {shape(checked.shape)}   {size(stored)} stored"))
    for label, text in _lines(checked):
        out.print(hanging(Text(f"  {label.ljust(11)}", "dim"), text, out.width))
    if beside:
        names = ", ".join(beside[:8]) + (", …" if len(beside) > 8 else "")
        out.print(
            hanging(Text("  beside     ", "dim"), f"{names}: no parts of the form, not looked at", out.width)
        )
    show_findings(out, checked.findings)
    show_behind(out, behind)
    out.print()
    verdict = "passed" if checked.verdict == "passed" else "FAILED"
    counts = count_line(checked.findings)
    _verdict(out, verdict, f"in {seconds(elapsed)}; {counts or _nothing(checked)}.")


def show_behind(out: Console, behind: Sequence[str]) -> None:
    """The prefixes with which a file has the parts, where it has none of them without."""
    if behind:
        more = f" and {number(len(behind) - 3)} more" if len(behind) > 3 else ""
        text = f"--prefix {' or '.join(map(clean, behind[:3]))}{more}"
        out.print(hanging("    Next: ", f"try {text}", out.width))


def _verdict(out: Console, verdict: str, rest: str) -> None:
    out.print(hanging(styled("  ", (verdict, _STYLES[verdict]), " "), rest, out.width))


def _nothing(checked: Checked) -> str:
    reference = checked.against_reference
    if reference is not None:
        if not reference.differing:
            return "every word and every value is right"
        return f"every word is legal and every value within {reference.within:g} of the reference"
    return "every word is legal; whether it is the right one a reference tells"


def _lines(checked: Checked) -> list[tuple[str, str]]:
    parts = ", ".join(f"{name} {part.dtype} {shape(part.shape)}" for name, part in checked.parts.items())
    words = "every word was judged" if checked.words == "full" else "no word was judged: the findings say why"
    lines = [("parts", parts or "none")]
    if checked.words == "full" and checked.given:
        params = ", ".join(f"{name} {value_word(value)}" for name, value in checked.given.items())
        lines.append(("parameters", params))
    lines.append(("words", words))
    contradicted = {one.where.get("dialect") for one in checked.findings if one.code == CONTRADICTED}
    for one in checked.conventions:
        doubt = "contradicted, see below" if one.dialect in contradicted else "nothing speaks against it"
        lines.append(("convention", f"{one.part}: {one.stated}, {one.meaning}; {doubt}"))
    if checked.against_reference is not None:
        lines.append(("reference", _measured(checked.against_reference)))
        if checked.against_reference.differing and checked.form.arithmetic != "exact":
            lines.append(("arithmetic", checked.form.arithmetic))
    if checked.against_source is not None:
        lines.append(("source", _error(checked.against_source)))
    return lines


def _measured(measures: Measures) -> str:
    if not measures.differing and not measures.beyond:
        return f"all {plural(measures.values, 'value')} equal, word for word in {measures.dtype}"
    differing = f"{number(measures.differing)} of {plural(measures.values, 'value')} differ"
    if measures.within:
        differing += f", {number(measures.beyond)} are not within {measures.within:g}"
    return f"{differing}; {_error(measures)}"


def _error(measures: Measures) -> str:
    if measures.not_finite:
        return f"{plural(measures.not_finite, 'pair')} with NaN or infinity, so there is no error to measure"
    if measures.max_abs_error is None or measures.rmse is None:
        return UNKNOWN
    sqnr = "" if measures.sqnr_db is None else f", SQNR {measures.sqnr_db:.2f} dB"
    return f"largest error {measures.max_abs_error:.6g}, RMSE {measures.rmse:.6g}{sqnr}"
