"""How much a struct type may ask for, whatever it declares: section 7 of the specification of struct types."""

from dataclasses import dataclass
from typing import Final

MOST_NESTING: Final = 128  # of the stack, reading takes five frames for each level


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest numbers allowed; each is checked before the work that it bounds."""

    nesting: int = 64  # levels of arrays, packed arrays, structures and references on one way down
    fields: int = 4096  # of one structure
    components: int = 1024  # of one packed array
    declarations: int = 4096  # reached from one root, itself included
    constant_bytes: int = 64 << 20  # of one root; a shared declaration counts once
    leaves: int = 65_536  # of one root, constants included
    dimension_parameters: int = 16  # of one declaration
    values: int = 1 << 31  # scalars unpacked by one reading; what needs no unpacking is not counted

    def __post_init__(self) -> None:
        """Raises: ValueError for a limit that nothing could be checked under."""
        for name in self.__slots__:
            if getattr(self, name) < 0:
                raise ValueError(f"the limit {name} is negative")
        if self.nesting > MOST_NESTING:
            raise ValueError(
                f"the limit nesting is beyond {MOST_NESTING}: types are read and laid out level by level"
            )


LIMITS: Final = Limits()
