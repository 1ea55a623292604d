"""`ninfer-gate schemes list` and `show`: the catalogue as tables or as JSON."""

from typing import Any

from ninfer_core.errors import UnknownName, Usage
from ninfer_core.schemes.catalogue import SCHEMES, SCHEMES_SCHEMA, find
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_document, not_empty


def list_schemes(kind: str | None, match: str | None, json: str | None) -> int:
    """Print the schemes that fit; the exit code."""

    def work() -> int:
        from ninfer_core.schemes.catalogue.facts import scheme_json
        from ninfer_core.schemes.catalogue.shown import matching, profiles
        from service.cli.schemes_view import show_list

        target = json_target(json)
        if kind is not None and kind.lower() not in profiles():
            raise Usage(f"--kind {kind!r} is no profile of the catalogue; it has {', '.join(profiles())}")
        schemes = matching(kind, match)
        if target is not None:
            target.write({"schema": SCHEMES_SCHEMA, "schemes": [scheme_json(scheme) for scheme in schemes]})
        if target is None or not target.alone:
            show_list(schemes)
        return 0

    return guarded(_task("listing the schemes", json), work)


def show_scheme(
    name: str, shape: str | None, params: list[str], onnx: bool, json: str | None, encoder: bool = False
) -> int:
    """Print everything about a scheme or one of its forms; the exit code."""

    def work() -> int:
        from ninfer_core.schemes.catalogue.forms import FORMS, form_of, forms_of
        from ninfer_core.schemes.catalogue.shown import Shown, shown_json
        from ninfer_core.schemes.run import stored_shapes
        from service.cli.schemes_inputs import no_such, read_params, read_shape
        from service.cli.schemes_view import show_function, show_in_full

        target = json_target(json)
        dims = read_shape(shape)
        try:
            scheme = find(not_empty("NAME", name))
        except UnknownName as unknown:
            raise no_such(name) from unknown
        if encoder and not onnx:
            raise Usage("--encoder says which function --onnx prints")
        if onnx or params or dims is not None:  # what only one form has
            form = form_of(name)
            one = Shown.of(scheme, form, dims, read_params(form, params))
            stored_shapes(form, one.example.shape, one.params)  # refuses what no array has
            shown: tuple[Shown, ...] = (one,)
        elif name in FORMS and name not in SCHEMES:
            shown = (Shown.of(scheme, FORMS[name]),)
        else:
            shown = tuple(Shown.of(scheme, form) for form in forms_of(scheme))
        if target is not None:
            target.write(shown_json(scheme, shown))
        if target is None or not target.alone:
            if onnx:
                show_function(shown[0], encoder)
            else:
                show_in_full(scheme, shown)
        return 0

    return guarded(_task(f"showing the scheme {name}", json), work)


def _task(doing: str, json: str | None) -> Task:
    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(SCHEMES_SCHEMA, verdict, code, message)

    return Task("schemes", doing, "Nothing is kept.", failed, JsonTarget(None) if json == "-" else None)
