"""Every form of the catalogue, gathered from the rooms that define them."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from ninfer_core.errors import UnknownName
from ninfer_core.registry import Closed
from ninfer_core.schemes import lattice
from ninfer_core.schemes.catalogue import SCHEMES, Scheme, find
from ninfer_core.schemes.form import Form

FORMS: Final[Closed[Form]] = Closed("form of a scheme", *lattice.FORMS)


def forms_of(scheme: Scheme) -> tuple[Form, ...]:
    """The forms of a scheme, the catalogue's own first."""
    return tuple(FORMS[name] for name in scheme.forms)


def form_of(name: str) -> Form:
    """The form of that name, or the only one that files of a scheme hold. Raises: UnknownName."""
    if name in FORMS:
        return FORMS[name]
    scheme = find(name)
    candidates = scheme.file or scheme.literal
    if len(candidates) != 1:
        reason = f"it is a scheme of several forms, {' and '.join(candidates)}: name one"
        raise UnknownName(FORMS.what, name, candidates, reason)
    return FORMS[candidates[0]]


def near(name: str) -> list[str]:
    """Names of the catalogue that are spelled much like `name`."""
    folded = {
        known.lower(): known for scheme in SCHEMES for known in (scheme.name, scheme.title, *scheme.forms)
    }
    return [folded[match] for match in get_close_matches(name.lower(), folded, n=3, cutoff=0.7)]


SCHEME_OF_FORM: Final[Mapping[str, tuple[str, ...]]] = {
    form.name: tuple(scheme.name for scheme in SCHEMES if form.name in scheme.forms) for form in FORMS
}
