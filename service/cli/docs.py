"""The pages of the documentation that are made from the registries: `python -m service.cli.docs [FOLDER]`."""

import sys
from pathlib import Path

from ninfer_core.findings import FINDINGS
from ninfer_core.verify.checks import MEANINGS
from service.cli.docs_schemes import SCHEMES_PAGE, schemes_page
from service.settings import Settings
from service.wording import facts

PAGE = "findings.md"
SETTINGS_PAGE = "settings.md"
_ABOUT: dict[str, str] = {
    **{str(check): meaning for check, meaning in MEANINGS.items()},
    "convert": "what `convert` refuses to write",
    "recipe": "the recipe document, before any weight is read",
    "source": "the checkpoint against what the recipe states of it",
    "scheme": "what is stored by a scheme of the catalogue: its arrays, the words in them, the values they mean",
    "struct": "a struct type and its value, in the order in which faults are looked for",
    "profile": "the description of a quantization, and the struct type that should say the same",
    "target": "the target document, before any artifact is compared with it",
}
_HEAD = """\
# Findings

Every way a file, a recipe or a value can be wrong has one stable code. `ninfer-gate explain CODE` prints the same text.
An error fails a verification; an advisory is something a person should see.

`where` places a finding: `row`, `group`, `lane`, `column` are logical coordinates, `byte` counts inside the object,
`offset` in the logical file; `member`, `path`, `index`, `file`, `tensor`, `role`, `rule` are what their names say.
A code that adds keys of its own says so under *Where*.

This page is generated from the registry by `python -m service.cli.docs`; a test compares the two.
"""


def findings_page() -> str:
    """The page about every finding code, by check."""
    checks = list(dict.fromkeys(definition.check for definition in FINDINGS))
    lines = [_HEAD]
    for check in checks:
        meaning = _ABOUT.get(check)
        lines.append(f"## {check}\n")
        if meaning:
            lines.append(f"{meaning[0].upper()}{meaning[1:]}.\n")
        for definition in FINDINGS:
            if definition.check == check:
                lines.append(f"### {definition.name}\n")
                lines += [f"- **{label}**: {text}" for label, text in facts(definition)]
                lines.append("")
    return "\n".join(lines).rstrip() + "\n"


_SETTINGS_HEAD = """\
# Settings

Every setting of `serve`, `worker` and `migrate` is an environment variable; options of the command line go before it.

This page is generated from `service/settings.py` by `python -m service.cli.docs`; a test compares the two.

| variable | default | meaning |
|---|---|---|
"""
# Defaults that depend on the machine or on other settings, in words.
_DEFAULTS = {
    "database_url": "SQLite in the data folder",
    "engine_database_url": "as the records",
    "threads": "one for each processor",
    "struct_limits": "those of [struct types](structs.md#limits)",
}


def settings_page() -> str:
    """The page about every setting."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = _DEFAULTS.get(name) or f"`{field.default}`"
        rows.append(f"| `NINFER_GATE_{name.upper()}` | {default} | {field.description} |")
    return _SETTINGS_HEAD + "\n".join(rows) + "\n"


def main(folder: Path) -> None:
    """Write the generated pages into `folder`."""
    (folder / PAGE).write_text(findings_page(), encoding="utf-8")
    (folder / SETTINGS_PAGE).write_text(settings_page(), encoding="utf-8")
    (folder / SCHEMES_PAGE).write_text(schemes_page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
