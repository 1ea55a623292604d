"""Settings out of the environment, changed by the options of a command line."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ninfer_core.errors import Usage
from service.settings import Settings


def changed_settings(changes: dict[str, Any]) -> Settings:
    """The settings with the options that were given. Raises: Usage naming every setting that is not right."""
    try:
        return Settings(**{name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        raise Usage("; ".join(map(_told, error.errors()))) from error


def _told(fault: ErrorDetails) -> str:
    said = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return said
    name = str(fault["loc"][0])
    return f"{name}: {said} (NINFER_GATE_{name.upper()})"
