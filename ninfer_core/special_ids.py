"""Special token ids out of a `tokenizer_config.json`: keys of `added_tokens_decoder` whose `special` is true."""

import re
from typing import Final

from ninfer_core import strict_json
from ninfer_core.strict_json import Malformed, Members

MAX_BYTES: Final = 64 << 20
_MAX_DEPTH: Final = 64
_TABLE: Final = "added_tokens_decoder"
_ID: Final = re.compile(r"0|[1-9][0-9]{0,18}")


class NoSpecialIds(Exception):
    """The text does not say which ids are special; `path` is the member that is wrong."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(f"{path}: expected {expected}, found {found}")
        self.path, self.expected, self.found = path, expected, found


def special_ids(text: bytes) -> tuple[int, ...]:
    """Ascending. Raises: NoSpecialIds, also for a member that is there twice, since readers then disagree."""
    try:
        document, _ = strict_json.parse(text, _MAX_DEPTH)
    except Malformed as error:
        raise NoSpecialIds("$", "a JSON object", error.problem.found) from None
    if not isinstance(document, Members):
        raise NoSpecialIds("$", "a JSON object", strict_json.type_name(document))
    table = document.get(_TABLE)
    if _TABLE in document.duplicates or not isinstance(table, Members):
        found = "the member twice" if _TABLE in document.duplicates else strict_json.show(table)
        raise NoSpecialIds(f"$.{_TABLE}", "an object by token id", found)
    if table.duplicates:
        raise NoSpecialIds(f"$.{_TABLE}", "each id once", f"{strict_json.show(table.duplicates[0])} twice")
    special = []
    for key, token in table.items():
        if _ID.fullmatch(key) is None:
            raise NoSpecialIds(f"$.{_TABLE}", "decimal ids", strict_json.show(key))
        flag = token.get("special", False) if isinstance(token, Members) else None
        if not isinstance(flag, bool) or (isinstance(token, Members) and "special" in token.duplicates):
            raise NoSpecialIds(
                f"$.{_TABLE}.{key}", "an object whose `special` is a boolean", strict_json.show(token)
            )
        if flag:
            special.append(int(key))
    return tuple(sorted(special))
