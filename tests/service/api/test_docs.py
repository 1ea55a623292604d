"""docs/api.md: its table of errors is the service's, and the routes that it names exist."""

import re
from pathlib import Path

from service.api.openapi import operations
from service.errors import ERRORS, ServiceError
from tests.service.api.world import World

PAGE = Path(__file__).resolve().parents[3] / "docs" / "api.md"


def row(error: type[ServiceError]) -> str:
    """An error as the page lists it."""
    return f"| {error.status} | `{error.code}` | {error.title} | {error.help} |"


def test_every_error_is_explained() -> None:
    table = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d{3} \|", line)]
    assert table == [row(error) for error in sorted(ERRORS, key=lambda error: error.status)]


def test_codes_and_classes_are_one_to_one() -> None:
    assert len({error.code for error in ERRORS}) == len(ERRORS)
    for error in ERRORS:
        assert re.fullmatch(r"[a-z_]+", error.code)
        assert error.help.endswith(".")
        assert error.title[0].isupper()
        assert not error.title.endswith(".")


def test_every_route_is_named(api: World) -> None:
    text = PAGE.read_text().replace("$DIGEST", "{digest}").replace("$JOB", "{id}")
    document = api.call("GET", "/openapi.json").json()
    for path, _, _ in operations(document):
        begin, _, end = re.sub(r"\{[a-z]+\}", "{id}", path).partition("{id}")
        assert begin.rstrip("/") in text, path
        assert end == "" or end in text, path


def test_every_address_on_the_page_exists(api: World) -> None:
    document = api.call("GET", "/openapi.json").json()
    known = {re.sub(r"\{[a-z]+\}", "{}", path) for path, _, _ in operations(document)}
    named = set(re.findall(r"/v1/[a-z-]+(?:/[a-z-]+)?(?:/\{[a-z]+\})?(?:/[a-z-]+)?", PAGE.read_text()))
    assert len(named) > 15
    assert {re.sub(r"\{[a-z]+\}", "{}", path) for path in named} <= known
