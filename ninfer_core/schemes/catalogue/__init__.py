"""The catalogue: every scheme by name, in words. Reading it loads no form; `catalogue.forms` has those.

None of its names is a format, a layout, an alias, a recipe's `encode` or an option of `convert`.
"""

from difflib import get_close_matches
from typing import Final

from ninfer_core.errors import UnknownName
from ninfer_core.registry import Closed
from ninfer_core.schemes.catalogue.more import MORE
from ninfer_core.schemes.catalogue.rows import ROWS
from ninfer_core.schemes.catalogue.scheme import Scheme

SCHEMES_SCHEMA: Final = "ninfer-gate/schemes/1"
SCHEMES: Final[Closed[Scheme]] = Closed("scheme", *ROWS, *MORE)


def find(name: str) -> Scheme:
    """The scheme of a name, of a title or spelling of the seed, or of one of its forms. Raises: UnknownName."""
    if name in SCHEMES:
        return SCHEMES[name]
    for scheme in SCHEMES:
        if name == scheme.title or name in scheme.aliases:
            return scheme
    for scheme in SCHEMES:
        if name in scheme.forms:
            return scheme
    raise UnknownName(SCHEMES.what, name, names())


def names() -> tuple[str, ...]:
    """Every name that `find` takes, schemes first."""
    spellings = [spelling for scheme in SCHEMES for spelling in (scheme.title, *scheme.aliases)]
    forms = [form for scheme in SCHEMES for form in scheme.forms]
    return tuple(dict.fromkeys((*SCHEMES.names, *spellings, *forms)))


def near(name: str) -> list[str]:
    """Names of the catalogue that end in `name` or are spelled much like it; three at most."""
    folded = {known.lower(): known for known in reversed(names())}
    bare = _bare(name)
    ends = [known for known in names() if bare and _bare(known).endswith(bare)]  # `q4_0` of `ggml_q4_0`
    close = [folded[match] for match in get_close_matches(name.lower(), folded, n=3, cutoff=0.7)]
    return list(dict.fromkeys((*ends, *close)))[:3]


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


__all__ = ["SCHEMES", "SCHEMES_SCHEMA", "Scheme", "find", "names", "near"]
