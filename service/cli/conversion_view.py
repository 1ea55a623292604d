"""A conversion for a person: what was written, or why nothing was."""

from collections import Counter
from collections.abc import Sequence

from ninfer_core.convert import Conversion
from ninfer_core.findings import Finding
from ninfer_core.recipes import Recipe
from ninfer_core.recipes.plan import TensorPlan
from service.cli.findings_view import count_line, show_findings
from service.cli.output import RECORD_SUFFIX
from service.cli.recipe_view import show_accounting
from service.cli.screen import aligned, console, hanging, styled
from service.text import digest, number, plural, seconds, size


def show_conversion(conversion: Conversion, recipe: Recipe, out: str, elapsed: float) -> None:
    """Print the outcome to standard output."""
    if not conversion.written:
        show_refusal(conversion.findings, out, elapsed)
        return
    screen = console()
    whole = not screen.is_terminal
    total = sum(file.bytes for file in conversion.files)
    screen.print(hanging(styled("  ", ("WRITTEN", "bold green"), "   "), out, screen.width))
    screen.print()
    identity = f"{recipe.model_id} / {recipe.weights_id}"
    parts = (digest(conversion.digest, whole), size(total), f"revision {conversion.revision}", identity)
    screen.print(hanging("  artifact   ", "   ".join(parts), screen.width))
    screen.print(styled(f"  content    {digest(conversion.content_root, whole)}"))
    made_by = f"{digest(recipe.digest, whole)}   {recipe.recipe_id}"
    screen.print(hanging("  recipe     ", made_by, screen.width))
    screen.print(styled(f"  record     {conversion.files[0].name}{RECORD_SUFFIX}"))
    if len(conversion.files) > 1:
        for file in conversion.files:
            screen.print(styled(f"  file       {file.name}   {number(file.bytes)} bytes"))
    screen.print()
    for line in _by_encoder(conversion):
        screen.print(f"  {line}", no_wrap=True, overflow="ellipsis")
    show_accounting(screen, conversion.accounting)
    show_findings(screen, conversion.findings)
    screen.print()
    found = count_line(conversion.findings)
    screen.print(
        styled("  ", ("WRITTEN", "bold green"), f" in {seconds(elapsed)}{'; ' + found if found else ''}.")
    )


def show_refusal(findings: Sequence[Finding], out: str, elapsed: float) -> None:
    """Print why nothing was written."""
    screen = console()
    screen.print(styled("  ", ("REFUSED", "bold red"), f"   {out}   nothing was written"))
    show_findings(screen, findings)
    screen.print()
    screen.print(styled("  ", ("REFUSED", "bold red"), f" in {seconds(elapsed)}; {count_line(findings)}."))


def _by_encoder(conversion: Conversion) -> list[str]:
    """One line for each encoder and format: objects, bytes, and what the encoder had to bend."""
    objects: Counter[tuple[str, str]] = Counter()
    stored: Counter[tuple[str, str]] = Counter()
    rescued: Counter[tuple[str, str]] = Counter()
    clamped: Counter[tuple[str, str]] = Counter()
    for item in conversion.objects:
        key = (
            (item.plan.maker, item.plan.fmt.name) if isinstance(item.plan, TensorPlan) else ("copy_bytes", "")
        )
        objects[key] += 1
        stored[key] += item.bytes
        rescued[key] += item.rescued
        clamped[key] += item.clamped
    rows = []
    for key, count in objects.items():
        encoder, fmt = key
        notes = [f"{plural(rescued[key], 'scale')} raised to the smallest one"] if rescued[key] else []
        notes += [f"{plural(clamped[key], 'code')} clamped"] if clamped[key] else []
        rows.append((encoder, fmt, plural(count, "object"), size(stored[key]), ", ".join(notes)))
    return aligned(rows, (False, False, True, True, False))
