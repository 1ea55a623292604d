"""How findings and registered names are worded wherever they are explained: in the terminal, on pages, in the documentation."""

import difflib

from ninfer_core.compute import COMPUTE_PROFILES
from ninfer_core.encoders import PROFILES
from ninfer_core.findings import FINDINGS, Definition
from ninfer_core.formats import FORMATS
from ninfer_core.kernels.registry import KERNELS, REGIMES
from ninfer_core.layouts import LAYOUTS
from ninfer_core.recipes.encoders import COPIES
from ninfer_core.recipes.restrictions import RULES
from ninfer_core.verify.checks import CHECKS

COMMON_PLACES = (
    "row, group, lane, column: logical coordinates. byte: inside the object. offset: in the logical file. "
    "member, path, index, file, tensor, role, rule: where their names say."
)


def near_names(name: str) -> list[str]:
    """At most three known names that look like `name`."""
    known = (
        *FINDINGS.names,
        *FORMATS.names,
        *LAYOUTS.names,
        *PROFILES.names,
        *COMPUTE_PROFILES.names,
        *CHECKS,
        *COPIES,
        *RULES,
        *REGIMES.names,
        *(kernel.name for kernel in KERNELS if name.startswith(f"{kernel.operation}.")),
    )
    slugs = {code.partition(".")[2]: code for code in FINDINGS.names}
    exact = [slugs[name]] if name in slugs else []
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    close += [slugs[slug] for slug in difflib.get_close_matches(name, slugs, n=2, cutoff=0.7)]
    return list(dict.fromkeys((*exact, *close)))[:3]


def facts(definition: Definition) -> list[tuple[str, str]]:
    """What a finding's page and `explain` both say, as (label, text)."""
    lines = [
        ("Severity", definition.severity + (f"; {definition.severity_by}" if definition.severity_by else "")),
        ("Check", definition.check + (f", rule {definition.rule}" if definition.rule else "")),
        ("Meaning", definition.meaning),
        ("Usual causes", definition.causes),
        ("What to do", definition.remedy),
    ]
    if definition.where:
        lines.append(("Where", definition.where))
    return lines
