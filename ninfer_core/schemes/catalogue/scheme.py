"""What an entry of the catalogue says of a scheme: facts in words. What can be computed is computed from its forms."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scheme:
    """One quantization scheme, under a name of this catalogue alone.

    `row` is its place in the summary table of the seed, None for what only the text defines. `profiles` is the table's
    "Proto used", `claimed` its bits per weight, both as printed there. `literal` and `file` name forms.
    """

    name: str
    title: str  # as the seed prints it
    row: int | None
    profiles: str
    claimed: str
    summary: str
    literal: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    contradictions: tuple[
        str, ...
    ] = ()  # of the seed with itself, with its own rules, or with what files hold
    aliases: tuple[str, ...] = ()  # other spellings that `find` takes
    apart: str = ""  # the name of the closed registry that it could be taken for, and is not

    @property
    def forms(self) -> tuple[str, ...]:
        """Every form by name, those that files hold first: most who ask have a file."""
        return self.file + self.literal
