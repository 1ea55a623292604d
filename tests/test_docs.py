"""The pages say what the registries and the command line say."""

import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ninfer_core.findings import FINDINGS, Findings
from ninfer_core.recipes import parse_recipe
from ninfer_core.schemes.struct_checking import check_text
from ninfer_core.targets import parse_target
from ninfer_core.verify.checks import CHECKS as VERIFY_CHECKS
from service.cli import (  # noqa: F401  add commands of their own
    backup_app,
    push_app,
    recipe_app,
    schemes_app,
    selfcheck_app,
    service_app,
    struct_app,
    targets_app,
    vectors_app,
)
from service.cli.app import app
from service.cli.docs import PAGE, SETTINGS_PAGE, findings_page, settings_page
from service.cli.docs_schemes import SCHEMES_PAGE, schemes_page
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


def test_the_page_of_schemes_is_the_catalogue() -> None:
    assert (ROOT / "docs" / SCHEMES_PAGE).read_text(encoding="utf-8") == schemes_page(), "run `make docs`"


def test_every_code_in_the_source_is_registered() -> None:
    written = set(re.findall(rf'"((?:{"|".join(CHECKS)})\.[a-z0-9_]+)"', source_text()))
    assert written
    assert not {code for code in written if code not in FINDINGS}


def test_every_registered_code_is_used() -> None:
    text = source_text()
    words = set(re.findall(r"[a-z][a-z0-9_]*", text))
    # Some rooms add their check in front (`recipe.` and a slug) or end a slug with what is missing.
    made = {f"{what}_{how}" for what in ("role", "input", "source") for how in ("missing", "unknown")}
    made |= {"limit_fields", "limit_components"}  # named after what there are too many of
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
            known = code in FINDINGS or code.endswith(
                (".json", ".md", ".py", ".npy", ".ninfer", ".safetensors")
            )
            assert known, f"{page.name}: {code}"


def _command(words: list[str]) -> list[str]:
    """The command in a line, with the one under it in a group."""
    grouped = (
        words[1]
        in ("campaign", "project", "recipe", "schemes", "struct", "targets", "token", "trust", "vectors")
        and words[2:]
        and not words[2].startswith("-")
    )
    return words[1 : 3 if grouped else 2]


@cache
def _help(*words: str) -> subprocess.CompletedProcess[str]:
    """What the installed command says of one of its commands: asked once, however many lines show it."""
    return subprocess.run([str(COMMAND), *words, "--help"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_that_pages_show_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in shell_blocks(page):
        words = line.removeprefix("$ ").split()
        if words and words[0] == "make":
            assert re.search(rf"^{re.escape(words[1])}:", makefile, re.MULTILINE), line
        if words and words[0].endswith("ninfer-gate"):
            options = [word.partition("=")[0] for word in words[2:] if word.startswith("--")]
            shown = _help(*_command(words))
            assert shown.returncode == 0, line
            assert all(option in shown.stdout for option in options), line


def options_of(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command with the spellings of its options, `--help` left out."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from options_of(inner, (*words, name))
    yield (
        words,
        {word for one in command.params for word in (*one.opts, *one.secondary_opts) if word[0] == "-"},
    )


def test_the_page_of_the_command_line_names_every_option() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^#{2,3} (.*?)\n(.*?)(?=^#{2,3} |\Z)", page, re.DOTALL | re.MULTILINE))
    seen = 0
    for words, options in options_of(get_command(app)):
        if not words:
            section = page.partition("\n## ")[0] + sections["formats, explain, version"]
        else:
            section = next(text for title, text in sections.items() if words[0] in re.split(r"[ ,]+", title))
        for option in options - ({"--version"} if not words else set()):
            seen += 1
            assert re.search(rf"{re.escape(option)}(?![\w-])", section), f"{' '.join(words)} {option}"
    assert seen > 40


def test_the_page_of_the_command_line_lists_every_check() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `--checks"))
    assert re.findall(r"`([a-z]+)`", row.partition("only these of ")[2].partition(";")[0]) == list(
        VERIFY_CHECKS
    )


def json_blocks(page: str) -> list[str]:
    """The JSON blocks of a page."""
    return re.findall(r"```json\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_documents_that_pages_show_are_sound() -> None:
    findings = Findings()
    recipe = parse_recipe(json_blocks("recipes.md")[0].encode(), findings)
    assert list(findings) == []
    assert recipe is not None
    assert recipe.restrictions
    assert recipe.cross_checks
    assert parse_target(json_blocks("targets.md")[0].encode(), findings) is not None
    assert list(findings) == []
    assert check_text(json_blocks("structs.md")[0].encode()).findings == ()


def test_the_program_on_the_page_of_struct_types_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "structs.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "point.json").write_text(json_blocks("structs.md")[0])
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "structs.md", "exec"), {})  # noqa: S102  our own page
    assert capsys.readouterr().out.splitlines() == [
        "passed []",
        "codes int8 (2, 32)",
        "scale float16 (2,)",
        "zero_point int32 ()",
    ]


def test_the_program_of_the_page_of_schemes(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "schemes.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(program, "schemes.md", "exec"), {})  # noqa: S102  our own page
    assert capsys.readouterr().out == "['g_idx', 'qweight', 'qzeros', 'scales'] (128, 8) passed\n"


def test_the_modules_that_the_page_of_struct_types_names_exist() -> None:
    page = (ROOT / "docs" / "structs.md").read_text(encoding="utf-8")
    table = page.partition("## In Python")[2].partition("## Limits")[0]
    names = [
        name for line in table.splitlines() if line[:3] == "| `" for name in line.split("|")[1].split(", ")
    ]
    assert len(names) > 8
    for name in names:
        importlib.import_module(f"ninfer_core.schemes.{name.strip(' `')}")


def test_pages_link_to_pages_that_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
