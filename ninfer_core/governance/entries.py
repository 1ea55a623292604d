"""Every governed entry and its meaning. A new registry is one more line in `GOVERNED`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic

from ninfer_core.compute import COMPUTE_PROFILES
from ninfer_core.encoders import PROFILES
from ninfer_core.encoders.known_answers import known_answers
from ninfer_core.formats import FORMATS
from ninfer_core.governance.specifications import ENCODER_TEXTS, FORMAT_TEXTS, LAYOUT_TEXTS, compute_text
from ninfer_core.governance.vectors import compute_vectors, format_vectors, layout_vectors
from ninfer_core.identity import canonical_digest
from ninfer_core.layouts import LAYOUTS
from ninfer_core.registry import Closed, Entry


@dataclass(frozen=True, slots=True)
class Meaning:
    """All that one name stands for: the text of its specification and what its oracle answers."""

    registry: str
    name: str
    version: int
    specification: str
    vectors: Any  # JSON values

    @property
    def digest(self) -> str:
        """The semantic digest: of the RFC 8785 form of name, version, specification and vectors."""
        return canonical_digest(
            {
                "name": self.name,
                "version": self.version,
                "specification": self.specification,
                "vectors": self.vectors,
            }
        )


@dataclass(frozen=True, slots=True)
class Governed(Generic[Entry]):
    """A registry under governance, and how to say what an entry of it means."""

    registry: Closed[Entry]
    describe: Callable[[Entry], tuple[int, str, Any]]  # version, specification, vectors

    def meanings(self) -> Iterator[Meaning]:
        """The meaning of every entry, in registry order."""
        for entry in self.registry:
            yield Meaning(self.registry.what, entry.name, *self.describe(entry))


GOVERNED: Final[tuple[Governed[Any], ...]] = (
    # A name that a registry does not describe is a KeyError here, so no entry comes in without a text.
    # Names of formats and layouts are their versions: another meaning takes another name.
    Governed(FORMATS, lambda fmt: (1, FORMAT_TEXTS[fmt.name], format_vectors(fmt))),
    Governed(LAYOUTS, lambda layout: (1, LAYOUT_TEXTS[layout.name], layout_vectors(layout))),
    Governed(
        PROFILES, lambda profile: (profile.version, ENCODER_TEXTS[profile.name], known_answers(profile))
    ),
    Governed(
        COMPUTE_PROFILES,
        lambda profile: (
            profile.version,
            compute_text(profile),
            compute_vectors(profile),
        ),
    ),
)


def meanings(governed: tuple[Governed[Any], ...] = GOVERNED) -> tuple[Meaning, ...]:
    """The meaning of every governed entry."""
    return tuple(meaning for one in governed for meaning in one.meanings())
