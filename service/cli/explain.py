"""`ninfer-gate explain`: what a finding means; what a name stands for, or why it is not registered."""

import difflib
import textwrap
from collections.abc import Iterator, Sequence

from ninfer_core.encoders import PROFILES, EncoderProfile
from ninfer_core.errors import UnknownName
from ninfer_core.findings import FINDINGS, Definition
from ninfer_core.formats import FORMATS, NumericFormat
from ninfer_core.layouts import LAYOUTS, Layout, canonical_layout
from ninfer_core.rejected_names import why_not
from ninfer_core.verify.checks import CHECKS, MEANINGS
from service.cli import EXIT_ERROR
from service.cli.formats import category, legal_shapes, words

COMMON_PLACES = (
    "row, group, lane, column: logical coordinates. byte: inside the object. offset: in the logical file. "
    "member, path, index, file, tensor, role, rule: where their names say."
)
_WIDTH = 96


def explain(name: str) -> int:
    """Print what `name` is; 0, or 2 with near matches when nothing is known about it."""
    from service.cli.screen import console, error_console
    from service.cli.text import clean

    described = describe(name)
    if described is not None:
        console().print("\n".join(described))
        return 0
    screen = error_console()
    screen.print(f"Error: {clean(name)!r} is neither a finding code nor a registered name.")
    near = near_names(name)
    if near:
        screen.print(f"Did you mean {' or '.join(near)}?")
    screen.print("Try a code as verify prints it, a check such as `values`, or a name that `formats` lists.")
    return EXIT_ERROR


def describe(name: str) -> list[str] | None:
    """The lines about a finding code, a check, a registered name or an excluded one; None for anything else."""
    if name in FINDINGS:
        return _finding(FINDINGS[name])
    if name in FORMATS:
        return _format(FORMATS[name])
    if name in LAYOUTS:
        return _layout(LAYOUTS[name])
    if name in PROFILES:
        return _profile(PROFILES[name])
    for check in CHECKS:
        if check == name:
            return _check(check, MEANINGS[check])
    return _family(name)


def near_names(name: str) -> list[str]:
    """At most three known names that look like `name`."""
    known = (*FINDINGS.names, *FORMATS.names, *LAYOUTS.names, *PROFILES.names, *CHECKS)
    slugs = {code.partition(".")[2]: code for code in FINDINGS.names}
    exact = [slugs[name]] if name in slugs else []
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    close += [slugs[slug] for slug in difflib.get_close_matches(name, slugs, n=2, cutoff=0.7)]
    return list(dict.fromkeys((*exact, *close)))[:3]


def facts(definition: Definition) -> list[tuple[str, str]]:
    """What a finding's page and `explain` both say, as (label, text)."""
    lines = [
        ("Severity", definition.severity),
        ("Check", definition.check + (f", rule {definition.rule}" if definition.rule else "")),
        ("Meaning", definition.meaning),
        ("Usual causes", definition.causes),
        ("What to do", definition.remedy),
    ]
    if definition.where:
        lines.append(("Where", definition.where))
    return lines


def _finding(definition: Definition) -> list[str]:
    return [definition.name, "", *_labelled(facts(definition))]


def _check(name: str, meaning: str) -> list[str]:
    codes = [definition for definition in FINDINGS if definition.check == name]
    lines = [name, "", *_labelled([("Kind", "check"), ("Meaning", f"{meaning}.")]), ""]
    for definition in codes:
        lines += textwrap.wrap(
            f"{definition.name}: {definition.meaning}",
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="      ",
        )
    return lines


def _format(fmt: NumericFormat) -> list[str]:
    layout = canonical_layout(fmt)
    codes, scales = words(fmt)
    encoders = [profile.name for profile in PROFILES if fmt in profile.formats]
    labelled = [
        ("Kind", f"{category(fmt)} numeric format"),
        ("Meaning", f"{fmt.meaning}."),
        ("Codes", codes),
        ("Scales", scales),
        ("Bits per weight", f"{float(fmt.logical_bits_per_weight):g} logical (full groups, no padding)"),
        ("Layout", layout.name),
        ("Shapes", legal_shapes(layout)),
    ]
    if encoders:
        labelled.append(("Encoders", ", ".join(encoders)))
    return [fmt.name, "", *_labelled(labelled)]


def _layout(layout: Layout) -> list[str]:
    formats = ", ".join(fmt.name for fmt in layout.formats)
    labelled = [("Kind", "tensor layout"), ("Formats", formats), ("Shapes", legal_shapes(layout))]
    return [layout.name, "", *_labelled(labelled)]


def _profile(profile: EncoderProfile) -> list[str]:
    formats = ", ".join(fmt.name for fmt in profile.formats)
    labelled = [
        ("Kind", "encoder profile"),
        ("Version", str(profile.version)),
        ("Formats", formats),
        ("Specification", profile.specification),
    ]
    return [profile.name, "", *_labelled(labelled)]


def _family(name: str) -> list[str] | None:
    reason = why_not(name)
    if reason is None:
        return None
    try:
        FORMATS[name]
    except UnknownName as unknown:
        registered = ", ".join(unknown.known)
        labelled = [
            ("Kind", "not a registered numeric format"),
            ("Why", f"{reason}."),
            ("Registered", registered),
        ]
        return [name, "", *_labelled(labelled)]
    return None


def _labelled(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(label) for label, _ in pairs)
    for label, text in pairs:
        first, *rest = textwrap.wrap(text, _WIDTH - width - 4, break_on_hyphens=False) or [""]
        yield f"  {label:<{width}}  {first}"
        yield from (" " * (width + 4) + line for line in rest)
