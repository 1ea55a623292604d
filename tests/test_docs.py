"""The pages say what the registries and the command line say."""

import re
import subprocess
from pathlib import Path

import pytest

from ninfer_core.findings import FINDINGS
from service.cli.docs import PAGE, SETTINGS_PAGE, findings_page, settings_page
from tests.cli.build import COMMAND

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
CHECKS = sorted({definition.check for definition in FINDINGS})
CODE = re.compile(rf"\b(?:{'|'.join(CHECKS)})\.[a-z0-9_]+\b")


def source_text() -> str:
    """All of the package, without the registry of findings itself."""
    registry = ROOT / "ninfer_core" / "findings"
    files = (path for path in (ROOT / "ninfer_core").rglob("*.py") if registry not in path.parents)
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def shell_blocks(page: Path) -> list[str]:
    """The lines of every shell block of a page, continuation lines joined."""
    blocks = re.findall(
        r"```(?:sh|bash|shell|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def test_the_page_of_findings_is_the_registry() -> None:
    assert (ROOT / "docs" / PAGE).read_text(encoding="utf-8") == findings_page(), "run `make docs`"


def test_the_page_of_settings_is_the_class() -> None:
    assert (ROOT / "docs" / SETTINGS_PAGE).read_text(encoding="utf-8") == settings_page(), "run `make docs`"


def test_every_code_in_the_source_is_registered() -> None:
    written = set(re.findall(rf'"((?:{"|".join(CHECKS)})\.[a-z0-9_]+)"', source_text()))
    assert written
    assert not {code for code in written if code not in FINDINGS}


def test_every_registered_code_is_used() -> None:
    text = source_text()
    words = set(re.findall(r"[a-z][a-z0-9_]*", text))
    # Some rooms add their check in front (`recipe.` and a slug) or end a slug with what is missing.
    made = {f"{what}_{how}" for what in ("role", "input", "source") for how in ("missing", "unknown")}
    unused = [
        code
        for code in FINDINGS.names
        if f'"{code}"' not in text and (slug := code.partition(".")[2]) not in words and slug not in made
    ]
    assert not unused


def test_every_definition_reads_like_a_page() -> None:
    for definition in FINDINGS:
        for text in (definition.meaning, definition.causes, definition.remedy):
            assert text[0] in "`" or text[0].isupper() or text[0].isdigit(), (definition.name, text)
            assert text.endswith("."), (definition.name, text)


def test_codes_that_pages_name_exist() -> None:
    for page in PAGES:
        for code in CODE.findall(page.read_text(encoding="utf-8")):
            known = code in FINDINGS or code.endswith((".json", ".md", ".py", ".ninfer", ".safetensors"))
            assert known, f"{page.name}: {code}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_that_pages_show_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in shell_blocks(page):
        words = line.removeprefix("$ ").split()
        if words and words[0] == "make":
            assert re.search(rf"^{re.escape(words[1])}:", makefile, re.MULTILINE), line
        if words and words[0].endswith("ninfer-gate"):
            options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
            shown = subprocess.run(
                [str(COMMAND), words[1], "--help"], capture_output=True, text=True, check=False
            )
            assert shown.returncode == 0, line
            assert all(option in shown.stdout for option in options), line


def test_pages_link_to_pages_that_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
