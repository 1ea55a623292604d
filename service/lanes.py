"""The two lanes of work: a person waits for what is interactive, and nobody in particular for what is bulk."""

from typing import Final, Literal

Lane = Literal["interactive", "bulk"]
INTERACTIVE: Final = "interactive"
BULK: Final = "bulk"
LANES: Final[tuple[Lane, ...]] = (INTERACTIVE, BULK)

LOWEST_PRIORITY: Final = -100
HIGHEST_PRIORITY: Final = 100
