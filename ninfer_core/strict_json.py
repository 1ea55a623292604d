"""JSON from files nobody trusts: strict syntax, bounded depth, duplicates seen at every depth, integers kept exact.

Numbers with a fraction or an exponent become `Real`, never a float that looks whole, so that `64.0` is not
an integer anywhere. Problems are collected; only broken syntax, encoding or nesting stops the reading.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

Json = Any  # what `json` yields; narrowed by the code that reads members

# A string that never closes is one token to the end of the text: no second look, no quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_MAX_INTEGER_DIGITS = 40  # twice what any unsigned 64-bit number needs


@dataclass(frozen=True, slots=True)
class Real:
    """A JSON number with a fraction or an exponent, as spelled."""

    text: str

    @property
    def value(self) -> float:
        """The nearest binary64 value; infinite when the number is too large."""
        return float(self.text)


@dataclass(frozen=True, slots=True)
class Huge:
    """A JSON integer of more digits than anything here can mean."""

    text: str


class Members(dict[str, Json]):
    """A JSON object that remembers which names it was given twice."""

    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at `path` (names and indices from the root): `kind` is the slug of a finding."""

    kind: str
    path: tuple[str | int, ...]
    found: str


class Malformed(Exception):
    """The text is no JSON that can be read on; holds the one problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.found)
        self.problem = problem


def parse(text: bytes, max_depth: int) -> tuple[Json, tuple[Problem, ...]]:
    """The value and every problem that reading could go past.

    Kinds: `json_member_duplicate`, `json_number_not_finite`, `json_surrogate`.
    Raises: Malformed with kind `json_utf8`, `json_syntax` or `json_depth`.
    """
    try:
        string = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(Problem("json_utf8", (), f"byte {error.start}: {error.reason}")) from None
    _check_depth(string, max_depth)
    try:
        value = json.loads(
            string,
            object_pairs_hook=_members,
            parse_float=Real,
            parse_int=_integer,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        found = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise Malformed(Problem("json_syntax", (), found)) from None
    problems: list[Problem] = []
    _walk(value, (), problems)
    return value, tuple(problems)


def _check_depth(string: str, max_depth: int) -> None:
    # Before parsing: the parser of the standard library answers deep nesting with RecursionError.
    depth = 0
    for token in _TOKEN.finditer(string):
        first = string[token.start()]
        if first in "[{":
            depth += 1
            if depth > max_depth:
                raise Malformed(
                    Problem("json_depth", (), f"deeper than {max_depth} at character {token.start()}")
                )
        elif first in "]}":
            depth -= 1


def _members(pairs: list[tuple[str, Json]]) -> Members:
    members = Members(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        repeated: dict[str, None] = {}
        for name, _ in pairs:
            if name in seen:
                repeated[name] = None
            seen.add(name)
        members.duplicates = tuple(repeated)
    return members


def _integer(text: str) -> int | Huge:
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else Huge(text)


def _refuse_constant(text: str) -> NoReturn:
    raise Malformed(Problem("json_number_not_finite", (), text))


def _walk(value: Json, path: tuple[str | int, ...], problems: list[Problem]) -> None:
    # Recursion is safe: the depth was limited before parsing.
    if isinstance(value, Members):
        for name in value.duplicates:
            problems.append(Problem("json_member_duplicate", (*path, name), name))
        for name, member in value.items():
            if _has_surrogate(name):
                problems.append(Problem("json_surrogate", path, ascii(name)))
            _walk(member, (*path, name), problems)
    elif isinstance(value, list):
        if all(type(member) is int for member in value):
            return
        for index, member in enumerate(value):
            _walk(member, (*path, index), problems)
    elif isinstance(value, str):
        if _has_surrogate(value):
            problems.append(Problem("json_surrogate", path, ascii(value)))
    elif isinstance(value, Real) and not math.isfinite(value.value):
        problems.append(Problem("json_number_not_finite", path, value.text[:40]))


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    return any("\ud800" <= character <= "\udfff" for character in text)


def show(value: Json) -> str:
    """A value in a message, bounded: JSON spelling, at most 80 characters, safe for any terminal or report."""
    if isinstance(value, Real | Huge):
        text = value.text
    elif isinstance(value, Members):
        text = f"an object of {len(value)} members"
    elif isinstance(value, list) and len(value) > 20:
        text = f"an array of {len(value)} elements"
    else:
        try:
            text = json.dumps(value, default=show)
        except (TypeError, ValueError):
            text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def type_name(value: Json) -> str:
    """What JSON calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | Huge):
        return "integer"
    if isinstance(value, Real):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
