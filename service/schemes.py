"""The catalogue of schemes as the service shows it; imported by those who ask, for its forms load numpy and more."""

import re
from functools import cache
from typing import Any, Final

from ninfer_core.errors import UnknownName
from ninfer_core.schemes.catalogue import SCHEMES, Scheme, find, near
from ninfer_core.schemes.catalogue.facts import scheme_json
from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.catalogue.shown import Shown, forms_shown, matching, profiles, shown_json
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.run import SchemeRefused, stored_shapes
from service.errors import Fault, InvalidRequest, SchemeNotFound
from service.records.pages import Page, cut, decode, encode, ordinal

SHAPE: Final = r"[0-9]{1,15}(x[0-9]{1,15}){0,15}"
_LISTING: Final = "schemes"
_SHAPE: Final = re.compile(SHAPE)


def page(
    *, limit: int, cursor: str | None, profile: str | None = None, match: str | None = None
) -> Page[dict[str, Any]]:
    """Schemes in the catalogue's order, each as one line of it. Raises: InvalidRequest, BadCursor."""
    if profile is not None and profile.lower() not in profiles():
        why = f"no profile of the catalogue; it has {', '.join(profiles())}"
        raise InvalidRequest(f"No such profile: {profile}.", Fault("query", "profile", why))
    after = decode(cursor, _LISTING, ordinal)
    first = 0 if after is None else after[0] + 1
    places = {scheme.name: place for place, scheme in enumerate(SCHEMES)}
    rows = [scheme for scheme in matching(profile, match) if places[scheme.name] >= first]
    found = cut(rows[: limit + 1], limit, lambda scheme: encode(_LISTING, places[scheme.name]))
    return Page([scheme_json(scheme) for scheme in found.items], found.next)


def document(name: str, shape: str | None) -> dict[str, Any]:
    """Everything about a scheme and its forms, or about the one form that `name` is; `shape` in place of examples.

    A form that does not take the shape is shown for its example, and `refused` says why. Raises: SchemeNotFound,
    InvalidRequest.
    """
    scheme = named(name)
    if shape is None:
        return _usual(scheme.name, name if name in FORMS and name not in SCHEMES else None)
    wanted, usual = read_shape(shape), chosen(scheme, name)
    taken: list[Shown] = []
    refused: dict[str, SchemeRefused] = {}
    for one in usual:
        asked = Shown.of(scheme, one.form, wanted)
        try:
            stored_shapes(one.form, wanted, asked.params)
            taken.append(asked)
        except SchemeRefused as refusal:
            refused[one.form.name] = refusal
            taken.append(one)
    if len(refused) == len(usual):
        faults = [
            Fault("query", "shape", f"{form}: {finding.message}")
            for form, refusal in refused.items()
            for finding in refusal.findings
        ]
        raise InvalidRequest(f"No form of {name} holds a tensor of the shape {shape}.", *faults)
    return shown_json(scheme, tuple(taken)) | {"refused": {form: str(why) for form, why in refused.items()}}


@cache  # a version has so many schemes and forms, and none of them changes
def _usual(scheme: str, form: str | None) -> dict[str, Any]:
    return shown_json(SCHEMES[scheme], chosen(SCHEMES[scheme], form or scheme)) | {"refused": {}}


def named(name: str) -> Scheme:
    """The scheme of a name, or of a form's. Raises: SchemeNotFound."""
    try:
        return find(name)
    except UnknownName:
        hint = " or ".join(near(name))
        raise SchemeNotFound(
            f"The catalogue has no scheme and no form {name}." + (f" Did you mean {hint}?" if hint else "")
        ) from None


def chosen(scheme: Scheme, name: str) -> tuple[Shown, ...]:
    """The forms that a name means, each for its example: the one form of that name, or all of a scheme."""
    if name in FORMS and name not in SCHEMES:
        return (Shown.of(scheme, FORMS[name]),)
    return forms_shown(scheme)


def read_shape(text: str) -> Shape:
    """`4096x4096` as a shape. Raises: InvalidRequest."""
    if _SHAPE.fullmatch(text) is None:
        raise InvalidRequest(f"{text[:100]} is no shape.", Fault("query", "shape", "write 4096x4096"))
    return tuple(int(count) for count in text.split("x"))
