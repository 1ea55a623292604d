"""Every form of the catalogue, gathered from the rooms that define them."""

from typing import Final

from ninfer_core.errors import Usage
from ninfer_core.registry import Closed
from ninfer_core.schemes import floating, ggml, integer, lattice, literal, rotated, ternary
from ninfer_core.schemes.catalogue import SCHEMES, Scheme, find
from ninfer_core.schemes.form import Form

FORMS: Final[Closed[Form]] = Closed(
    "form of a scheme",
    *literal.FORMS,
    *integer.FORMS,
    *floating.FORMS,
    *ternary.FORMS,
    *rotated.FORMS,
    *lattice.FORMS,
    *ggml.FORMS,
)


def forms_of(scheme: Scheme) -> tuple[Form, ...]:
    """The forms of a scheme, those that files hold first."""
    return tuple(FORMS[name] for name in scheme.forms)


def form_of(name: str) -> Form:
    """The form of that name, or the only one that files of a scheme hold.

    Raises: UnknownName with names that are spelled alike, Usage for a scheme of several forms.
    """
    if name in FORMS:
        return FORMS[name]
    scheme = find(name)
    candidates = scheme.file or scheme.literal
    if len(candidates) != 1:
        raise Usage(f"{name!r} has several forms, {', '.join(candidates)}: name one")
    return FORMS[candidates[0]]


def schemes_of(form: Form) -> tuple[str, ...]:
    """The names of the schemes that have a form."""
    return tuple(scheme.name for scheme in SCHEMES if form.name in scheme.forms)
