"""Settings out of the environment, changed by the options of a command line."""

from typing import Any

from pydantic import ValidationError

from ninfer_core.errors import Usage
from service.settings import Settings


def changed_settings(changes: dict[str, Any]) -> Settings:
    """The settings with the options that were given. Raises: Usage naming every setting that is not right."""
    try:
        return Settings(**{name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']} (NINFER_GATE_{str(fault['loc'][0]).upper()})"
            for fault in error.errors()
        ]
        raise Usage("; ".join(faults)) from error
