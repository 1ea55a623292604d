"""Members of the document of struct types that documents elsewhere do not have: 64-bit numbers, empty names, bytes."""

import binascii

from ninfer_core.documents.fields import Fields
from ninfer_core.strict_json import Huge


class Object(Fields):
    """One closed object; a reader method gives an empty value after a finding or for an absent member."""

    def string(self, name: str) -> str:
        """A string, which may be empty: the checker judges names."""
        value = self.raw(name)
        if name in self and not isinstance(value, str):
            self.wrong_type(name, value, "a string")
        return value if isinstance(value, str) else ""

    def strings(self, name: str) -> tuple[str, ...] | None:
        """An array of strings, which may be empty ones; None when absent."""
        if name not in self:
            return None
        values = self.array(name) or []
        if all(isinstance(value, str) for value in values):
            return tuple(values)
        self.wrong_value(name, "an array of strings")
        return ()

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """An object whose members are strings, or integers that are taken as their digits."""
        members = (self.object(name) or {}).items()
        pairs = tuple(
            (key, str(value)) for key, value in members if isinstance(value, str) or type(value) is int
        )
        if len(pairs) != len(members):
            self.wrong_value(name, "an object of strings or integers")
        return pairs

    def number(self, name: str, low: int, high: int) -> int | None:
        """An integer from `low` to `high`; None after a finding or when absent."""
        if name not in self:
            return None
        value = self.raw(name)
        if type(value) is int and low <= value <= high:
            return value
        if type(value) is int or isinstance(value, Huge):
            self.wrong_value(name, f"an integer from {low} to {high}")
        else:
            self.wrong_type(name, value, "an integer")
        return None

    def numbers(self, name: str, low: int, high: int) -> tuple[int, ...] | None:
        """An array of such integers; None after a finding or when absent."""
        values = self.array(name)
        if values is None:
            return None
        if all(type(value) is int and low <= value <= high for value in values):
            return tuple(values)
        self.wrong_value(name, f"an array of integers from {low} to {high}")
        return None

    def hex(self, name: str) -> bytes:
        """Bytes as hexadecimal digits."""
        try:
            return binascii.unhexlify(self.string(name))
        except ValueError:
            self.wrong_value(name, "pairs of hexadecimal digits")
            return b""
