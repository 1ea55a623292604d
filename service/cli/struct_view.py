"""Struct types for a person: sizes and leaves of one document, or what became of each case of a file."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from ninfer_core.schemes.struct_checking import CheckedStruct
from ninfer_core.schemes.structs.conformance import Case, verdict_of
from ninfer_core.schemes.structs.examine import declared_by
from ninfer_core.schemes.structs.faults import StructFault
from ninfer_core.schemes.structs.numbers import Number, numbers
from ninfer_core.schemes.structs.view import LeafArray, view
from service.cli.findings_view import count_line, show_findings
from service.cli.screen import aligned, console, fitted, hanging, show_left_out, styled
from service.text import UNKNOWN, clean, number, plural

_LEAVES_SHOWN: Final = 40
_VALUES_SHOWN: Final = 4
_RIGHT: Final = (True, False, False, False, False)
_CASES_SHOWN: Final = 20
_STYLES: Final = {
    "passed": ("passed", "bold green"),
    "failed": ("FAILED", "bold red"),
    "incomplete": ("incomplete", "bold yellow"),
}


def show_checked(path: str, checked: CheckedStruct, unchecked: str | None, limit: int | None) -> None:
    """What one document says, and whether it holds."""
    out = console()
    document, found = checked.document, checked.examination
    title = document.name if document is not None and document.name else path
    out.print(hanging("  ", title, out.width, "bold"))
    if document is not None and document.described:
        note = "a situation in words (decoder, profile, generator): there is no type in it to check"
        out.print(hanging("  ", note, out.width))
    if found is not None and found.size_bits is not None:
        size = plural(found.size_bytes, "byte") if found.size_bytes is not None else "no whole bytes"
        out.print(styled("  ", ("size       ", "dim"), f"{size}, {plural(found.size_bits, 'bit')}"))
        _show_leaves(out, checked, _LEAVES_SHOWN if limit is None else limit)
    if unchecked:
        out.print(hanging(Text("  unchecked  ", "dim"), unchecked, out.width))
    show_findings(out, checked.findings)
    out.print()
    if checked.verdict == "failed":
        out.print(styled("  ", ("FAILED", "bold red"), f"; {count_line(checked.findings)}."))
    elif checked.verdict == "incomplete":
        why = "there is nothing to check" if checked.empty else "the type is sound, the payload was not seen"
        out.print(styled("  ", ("incomplete", "bold yellow"), f"; {why}."))
    else:
        out.print(styled("  ", ("passed", "bold green"), f"; {_judged(checked)}."))


def show_cases(path: str, cases: Sequence[Case], limit: int | None) -> None:
    """The cases that came out otherwise than they say, and the count of all."""
    out = console()
    out.print(hanging("  ", path, out.width, "bold"))
    wrong = [case for case in cases if case.outcome == "failed"]
    for case in wrong[: _CASES_SHOWN if limit is None else limit]:
        out.print()
        out.print(hanging("  ", f"{case.name or 'a case without a name'}", out.width, "bold"))
        found = ", ".join(dict.fromkeys(finding.code for finding in case.findings)) or "nothing"
        expected = case.expected or "nothing"
        out.print(hanging("    ", f"expected {expected}, found {found}", out.width))
        show_findings(out, case.findings)
    counts = Counter(case.outcome for case in cases)
    out.print()
    described = counts["described"]
    words = f", {described} in words only" if described else ""
    line = f"{plural(len(cases), 'case')}: {counts['passed']} as they say{words}, {len(wrong)} otherwise"
    verdict = _STYLES[verdict_of(cases)]
    out.print(styled("  ", verdict, f"; {line}."))


def _judged(checked: CheckedStruct) -> str:
    document = checked.document
    if document is None or document.value is None:
        return "types and names are sound"
    if document.inline_bytes is None and checked.payload_bytes is None:
        return "the type is sound; no payload was given"
    return "type, counts and payload agree"


def _show_leaves(out: Console, checked: CheckedStruct, most: int) -> None:
    if checked.examination is None:
        return
    leaves = checked.examination.leaves
    values = _values(checked, most)
    rows: list[list[str]] = [["at bit", "leaf", "type", "shape", "values"]]
    for index, leaf in enumerate(leaves[:most]):
        shape = "".join(f"[{count}]" for count in leaf.shape) or "scalar"
        at = "constant" if leaf.constant is not None else number(leaf.offset_bits)
        rows.append([at, clean(leaf.path) or "the value", leaf.label, shape, values.get(index, UNKNOWN)])
    out.print()
    kept, right = fitted(rows, _RIGHT, out, 1, (4, 3))
    for index, line in enumerate(aligned(kept, right, gap=2)):
        out.print(Text(f"  {line}", "" if index else "dim"), no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, rows[0], kept[0])
    if len(leaves) > most:
        out.print(f"  … and {number(len(leaves) - most)} more; --json FILE lists a thousand at most")


def _values(checked: CheckedStruct, most: int) -> dict[int, str]:
    """The first values of the leaves that are shown, where the payload is at hand."""
    document = checked.document
    declared = None if document is None else declared_by(document)
    if document is None or document.value is None or declared is None or checked.findings:
        return {}
    try:
        arrays = view(declared, document.value.data)[:most]
        return {index: _first(array) for index, array in enumerate(arrays)}
    except StructFault:  # no payload at hand, or more than is unpacked at once
        return {}


def _first(array: LeafArray) -> str:
    words = array.words
    shown = ", ".join(
        _spelled(value) for value in numbers(words.reshape(-1)[:_VALUES_SHOWN], array.plan.element)
    )
    return f"{shown}, …" if words.size > _VALUES_SHOWN else shown


def _spelled(value: Number) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()
