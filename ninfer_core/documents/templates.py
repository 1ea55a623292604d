"""`{v}` in names, and the values that variables run through."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import Final

# Characters of all names that a document expands to, and NAME_COST for each name: the memory of what is made of it
# follows the document and this limit, not a product of sets.
MAX_EXPANSION: Final = 1 << 26
NAME_COST: Final = 64

_TOKEN = re.compile(r"\{([^{}]*)\}|[{}]")

Each = tuple[tuple[str, tuple[int, ...]], ...]  # variable and its values, outermost first
Assignment = Mapping[str, int]


def template_fault(template: str, variables: Collection[str]) -> str | None:
    """What is wrong with the braces of a name; None when each is a known variable."""
    for token in _TOKEN.finditer(template):
        name = token[1]
        if name is None:
            return f"a single {token[0]} at character {token.start()}"
        if name not in variables:
            return f"no variable {name!r} in `each`"
    return None


def fill(template: str, values: Assignment) -> str:
    """The name with every `{v}` replaced by the unpadded decimal of its value; braces have been checked."""
    return _TOKEN.sub(lambda token: str(values[token[1]]), template) if values else template


def assignments(each: Each) -> Iterator[Assignment]:
    """Every combination in order, the last variable fastest; one empty combination for no variable."""
    names = [name for name, _ in each]
    for values in product(*(values for _, values in each)):
        yield dict(zip(names, values, strict=True))


def combinations(each: Each, enough: int) -> int:
    """How many combinations `assignments` yields; counting stops above `enough`."""
    count = 1
    for _, values in each:
        count *= len(values)
        if count > enough:
            break
    return count
