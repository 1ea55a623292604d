"""`ninfer-gate explain`: what a finding means; what a name stands for, or why it is not registered."""

import textwrap
from collections.abc import Iterator, Sequence

from ninfer_core.compute import COMPUTE_PROFILES, ComputeProfile
from ninfer_core.encoders import PROFILES, EncoderProfile
from ninfer_core.errors import UnknownName
from ninfer_core.findings import FINDINGS
from ninfer_core.format_facts import category, legal_shapes, words
from ninfer_core.formats import FORMATS, DirectFormat, NumericFormat
from ninfer_core.governance.specifications import ENCODER_TEXTS, FORMAT_TEXTS, LAYOUT_TEXTS
from ninfer_core.kernels.registry import KERNELS, REGIMES, Kernel, Regime
from ninfer_core.layouts import LAYOUTS, Layout, canonical_layout
from ninfer_core.recipes.encoders import COPIES
from ninfer_core.recipes.restrictions import SOURCE_RULES, STORED_RULES
from ninfer_core.rejected_names import why_not
from ninfer_core.schemes.catalogue import find
from ninfer_core.verify.checks import MEANINGS
from service.cli import EXIT_ERROR
from service.wording import facts, near_names

_WIDEST = 100
_SUBJECTS = {
    "recipe": "what is wrong with a recipe",
    "source": "a source that is not what the recipe says",
    "target": "what is wrong with a target",
    "scheme": "what is wrong with what is stored by a scheme of the catalogue",
    "struct": "what is wrong with a struct type or its value",
    "profile": "what is wrong with the description of a quantization",
    "convert": "why a source cannot become the object that a recipe asks for",
    "kernels": "what became of the kernels that a piece of work ran",
}


def explain(name: str) -> int:
    """Print what `name` is; 0, or 2 with near matches when nothing is known about it."""
    from service.cli.screen import console, error_console
    from service.text import clean

    screen = console()
    described = describe(name, min(screen.width, _WIDEST) - 2)
    if described is not None:
        screen.print("\n".join(described))
        return 0
    screen = error_console()
    screen.print(f"Error: {clean(name)!r} is neither a finding code nor a registered name.")
    near = near_names(name)
    if near:
        screen.print(f"Did you mean {' or '.join(near)}?")
    screen.print(
        "Try a code as verify prints it, a check such as `values`, a name that `formats`, `schemes` or `kernels` lists, or an "
        "`encode` or a restriction rule of a recipe."
    )
    return EXIT_ERROR


def describe(name: str, width: int) -> list[str] | None:
    """Lines of at most `width` about a finding code, a check, a name of recipes or registries; None for all else."""
    if name in FINDINGS:
        return [name, "", *_labelled(facts(FINDINGS[name]), width)]
    if name in FORMATS:
        return [name, "", *_labelled(_format(FORMATS[name]), width)]
    if name in LAYOUTS:
        return [name, "", *_labelled(_layout(LAYOUTS[name]), width)]
    if name in PROFILES:
        return [name, "", *_labelled(_profile(PROFILES[name]), width)]
    if name in COMPUTE_PROFILES:
        return [name, "", *_labelled(_compute(COMPUTE_PROFILES[name]), width)]
    if name in KERNELS:
        return [name, "", *_labelled(_kernel(KERNELS[name]), width)]
    if name in REGIMES:
        return [name, "", *_labelled(_regime(REGIMES[name]), width)]
    meanings = _SUBJECTS | {str(check): meaning for check, meaning in MEANINGS.items()}
    if name in meanings:
        return _check(name, meanings[name], width)
    if name in COPIES:
        pairs = [("Kind", "value of `encode` in a recipe"), ("Meaning", COPIES[name])]
        return [name, "", *_labelled(pairs, width)]
    rule = SOURCE_RULES.get(name) or STORED_RULES.get(name)
    if rule is not None:
        return [name, "", *_labelled(_restriction(name, rule), width)]
    pairs = [*(_family(name) or ()), *_scheme(name)]
    return [name, "", *_labelled(pairs, width)] if pairs else None


def _check(name: str, meaning: str, width: int) -> list[str]:
    codes = [definition for definition in FINDINGS if definition.check == name]
    kind = "group of findings" if name in _SUBJECTS else "check"
    lines = [name, "", *_labelled([("Kind", kind), ("Meaning", f"{meaning}.")], width), ""]
    for definition in codes:
        lines += textwrap.wrap(
            f"{definition.name}: {definition.meaning}",
            width,
            initial_indent="  ",
            subsequent_indent="      ",
        )
    return lines


def _format(fmt: NumericFormat) -> list[tuple[str, str]]:
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
        ("Specification", FORMAT_TEXTS[fmt.name]),
    ]
    labelled.append(("Encoders", ", ".join(encoders) or _writers(fmt)))
    return labelled


def _writers(fmt: NumericFormat) -> str:
    return (
        "none: words are copied"
        if isinstance(fmt, DirectFormat)
        else "none: words are copied from a source that is quantized already"
    )


def _layout(layout: Layout) -> list[tuple[str, str]]:
    formats = ", ".join(fmt.name for fmt in layout.formats)
    return [
        ("Kind", "tensor layout"),
        ("Formats", formats),
        ("Shapes", legal_shapes(layout)),
        ("Specification", LAYOUT_TEXTS[layout.name]),
    ]


def _profile(profile: EncoderProfile) -> list[tuple[str, str]]:
    formats = ", ".join(fmt.name for fmt in profile.formats)
    return [
        ("Kind", "encoder profile"),
        ("Version", str(profile.version)),
        ("Formats", formats),
        ("Specification", ENCODER_TEXTS[profile.name]),
    ]


def _restriction(name: str, meaning: str) -> list[tuple[str, str]]:
    kept = "by encoders and operations, stated or not" if name in SOURCE_RULES else "with the stored words"
    pairs = [("Kind", "rule of a recipe's `restrictions`"), ("Meaning", meaning), ("Checked", kept)]
    code = f"restrictions.{name}"
    return [*pairs, ("Finding", code)] if code in FINDINGS else pairs


def _compute(profile: ComputeProfile) -> list[tuple[str, str]]:
    return [
        ("Kind", "compute profile"),
        ("Version", str(profile.version)),
        ("Operation", profile.operation),
        ("Formats", ", ".join(fmt.name for fmt in profile.formats)),
        ("Inputs", "; ".join(profile.inputs)),
        ("Output", profile.output),
        ("Casts", "; ".join(profile.casts) or "none"),
        ("Determinism", profile.determinism),
        ("Criterion", f"{profile.criterion.name}: {profile.criterion.meaning}"),
        ("Specification", profile.specification),
    ]


def _kernel(kernel: Kernel) -> list[tuple[str, str]]:
    device = "" if kernel.device_class == "cpu" else " --device cuda:0"
    return [
        ("Kind", "kernel of the whitelist"),
        ("Operation", kernel.operation),
        ("Format", f"{kernel.format.name}, in the layout {kernel.layout.name}"),
        ("Words", kernel.dtype or "those that are stored, and no others"),
        ("Shapes", f"{kernel.regime.name}: {kernel.regime.meaning}"),
        ("Device class", kernel.device_class),
        ("Compute profile", kernel.profile.name),
        ("Criterion", f"{kernel.profile.criterion.name}: {kernel.profile.criterion.meaning}"),
        ("Proof", f"ninfer-gate selfcheck{device} --only {kernel.name}"),
    ]


def _regime(regime: Regime) -> list[tuple[str, str]]:
    formats: dict[str, dict[str, None]] = {}
    for kernel in KERNELS:
        if kernel.regime is regime:
            formats.setdefault(kernel.operation, {})[kernel.format.name] = None
    taken = "; ".join(f"{operation} of {', '.join(names)}" for operation, names in formats.items())
    return [
        ("Kind", "shape regime: the shapes that a kernel takes"),
        ("Shapes", regime.meaning),
        ("Kernels", taken),
    ]


def _family(name: str) -> list[tuple[str, str]] | None:
    reason = why_not(name)
    if reason is None:
        return None
    try:
        FORMATS[name]
    except UnknownName as unknown:
        registered = ", ".join(unknown.known)
        return [
            ("Kind", "not a registered numeric format"),
            ("Why", f"{reason}."),
            ("Registered", registered),
        ]
    return None


def _scheme(name: str) -> list[tuple[str, str]]:
    """What the catalogue of foreign quantizations says of a name; nothing where it has none of that name."""
    try:
        scheme = find(name)
    except UnknownName:
        return []
    return [
        ("Catalogue", f"a scheme of other tools, no format of a .ninfer file. {scheme.summary}"),
        ("Forms", ", ".join(scheme.forms)),
        ("Shown by", f"ninfer-gate schemes show {scheme.name}"),
    ]


def _labelled(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    column = max(len(label) for label, _ in pairs)
    for label, text in pairs:
        first, *rest = textwrap.wrap(text, max(20, width - column - 4), break_on_hyphens=False) or [""]
        yield f"  {label:<{column}}  {first}"
        yield from (" " * (column + 4) + line for line in rest)
