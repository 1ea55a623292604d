"""The part of JSON Schema that our OpenAPI document uses; what it does not know, it refuses to judge."""

import re
from typing import Any

_TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_WORDLESS = {"title", "description", "default", "examples", "format", "discriminator", "example"}


def faults(schema: dict[str, Any], value: Any, whole: dict[str, Any], path: str = "$") -> list[str]:
    """Where a value does not fit its schema; `whole` is the document that references lead into."""
    found: list[str] = []
    for word, rule in schema.items():
        match word:
            case "$ref":
                target: Any = whole
                for step in rule.removeprefix("#/").split("/"):
                    target = target[step]
                found += faults(target, value, whole, path)
            case "type":
                if not _TYPES[rule](value):
                    found.append(f"{path} is no {rule}: {value!r}")
            case "anyOf" | "oneOf":
                if all(faults(each, value, whole, path) for each in rule):
                    found.append(f"{path} fits none of {len(rule)}: {value!r}")
            case "enum" | "const":
                if value not in (rule if word == "enum" else [rule]):
                    found.append(f"{path} is not {rule}: {value!r}")
            case "pattern":
                if isinstance(value, str) and not re.search(rule, value):
                    found.append(f"{path} does not match {rule}: {value!r}")
            case "properties":
                for name, each in rule.items():
                    if isinstance(value, dict) and name in value:
                        found += faults(each, value[name], whole, f"{path}.{name}")
            case "required":
                members = value if isinstance(value, dict) else {}
                found += [f"{path}.{name} is missing" for name in rule if name not in members]
            case "items":
                for index, item in enumerate(value if isinstance(value, list) else ()):
                    found += faults(rule, item, whole, f"{path}[{index}]")
            case "additionalProperties":
                rest = set(value) - set(schema.get("properties", ())) if isinstance(value, dict) else set()
                for name in rest if rule is not True else ():
                    found += (
                        [f"{path}.{name} is unknown"]
                        if rule is False
                        else faults(rule, value[name], whole, f"{path}.{name}")
                    )
            case "minLength" | "minItems" | "minProperties":
                if isinstance(value, str | list | dict) and len(value) < rule:
                    found.append(f"{path} is shorter than {rule}")
            case "maxLength" | "maxItems" | "maxProperties":
                if isinstance(value, str | list | dict) and len(value) > rule:
                    found.append(f"{path} is longer than {rule}")
            case "minimum":
                if isinstance(value, int | float) and value < rule:
                    found.append(f"{path} is below {rule}")
            case "maximum":
                if isinstance(value, int | float) and value > rule:
                    found.append(f"{path} is above {rule}")
            case _ if word not in _WORDLESS:
                raise AssertionError(f"{path}: the test does not know the word {word}")
    return found
