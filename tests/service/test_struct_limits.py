"""The limits of struct types as a setting: read from the environment as JSON, refused with a reason."""

import pytest
from pydantic import ValidationError

from ninfer_core.schemes.structs.limits import LIMITS, Limits
from service.settings import Settings

NAME = "NINFER_GATE_STRUCT_LIMITS"


def test_what_the_setting_does_not_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert Settings().struct_limits == LIMITS
    monkeypatch.setenv(NAME, '{"nesting": 32, "leaves": 7}')
    assert Settings().struct_limits == Limits(nesting=32, leaves=7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "3",
        '{"nest": 3}',
        '{"nesting": 129}',
        '{"leaves": -1}',
        '{"leaves": "a"}',
        "[" * 60_000,
    ],
    ids=range(9),
)
def test_what_is_no_limit_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ValidationError, match="struct_limits"):
        Settings()


def test_another_process_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """`serve` hands its settings to its worker through the environment."""
    made = Settings(struct_limits=Limits(nesting=5), threads=3, log_json=True)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == made
