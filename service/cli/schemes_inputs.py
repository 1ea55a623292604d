"""What a person gives to a form: a shape, parameters and files, read into the values that forms take."""

import math
import re
from collections.abc import Container, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from ninfer_core import strict_json
from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile
from ninfer_core.schemes.catalogue import near
from ninfer_core.schemes.form import Array, Form, Parameter, Shape
from ninfer_core.schemes.numpy_files import read_npy
from ninfer_core.schemes.reading import FileKind, file_kind, in_form, read_arrays, read_raw
from ninfer_core.schemes.run import SchemeRefused, stored_shapes
from service.cli.output import not_empty

_SHAPE: Final = re.compile(r"\d{1,19}(?:[x,]\d{1,19})*")
_INTEGER: Final = re.compile(r"-?\d{1,19}")
_JSON_DEPTH: Final = 4


def no_such(name: str) -> Usage:
    """Why a name leads nowhere, with names that are spelled alike."""
    close = near(name)
    hint = f"did you mean {' or '.join(close)}?" if close else "`ninfer-gate schemes list` has them all"
    return Usage(f"{name!r} is no scheme of the catalogue and no form of one; {hint}")


def read_shape(text: str | None) -> Shape | None:
    """`4096x4096` or `4096,4096` as a shape. Raises: Usage."""
    if text is None:
        return None
    if _SHAPE.fullmatch(text) is None:
        raise Usage(f"--shape {text!r} is no shape; write 4096x4096")
    return tuple(int(count) for count in re.split("[x,]", text))


def read_params(form: Form, texts: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE` texts, or JSON objects, as values of the form's parameters. Raises: Usage."""
    known = {parameter.name: parameter for parameter in form.parameters}
    given: dict[str, Any] = {}
    for text in texts:
        members = _object(text) if text.lstrip().startswith("{") else dict([_assignment(form, known, text)])
        for name in members:
            if name in given:
                raise Usage(f"--params gives {name} twice")
        given |= members
    return given


def _object(text: str) -> dict[str, Any]:
    try:
        value, problems = strict_json.parse(text.encode(), _JSON_DEPTH)
    except strict_json.Malformed as malformed:
        raise Usage(f"--params {text!r} is no JSON object: {malformed}") from malformed
    if problems or not isinstance(value, strict_json.Members):
        why = f": {problems[0].found}" if problems else ""
        raise Usage(f"--params {text!r} is no JSON object{why}")
    return {name: _plain(member) for name, member in value.items()}


def _plain(value: strict_json.Json) -> Any:
    if isinstance(value, strict_json.Real | strict_json.Huge):
        number = float(value.text)
        if not math.isfinite(number):
            raise Usage(f"--params: {value.text} is beyond any number")
        return number
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _assignment(form: Form, known: dict[str, Parameter], text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Usage(f"--params {text!r}: write NAME=VALUE")
    if name not in known:
        raise Usage(f"{name!r} is no parameter of {form.name}; it has {', '.join(known) or 'none'}")
    return name, _value(known[name], value)


def _value(parameter: Parameter, text: str) -> Any:
    match parameter.kind:
        case "integer":
            return _number(parameter, text, whole=True)
        case "number":
            return _number(parameter, text, whole=False)
        case "flag":
            if text not in ("true", "false"):
                raise Usage(f"--params {parameter.name} is true or false, not {text!r}")
            return text == "true"
        case "integers" | "numbers":
            whole = parameter.kind == "integers"
            return tuple(_number(parameter, item, whole) for item in text.split(",")) if text else ()
        case "text":
            return text


def _number(parameter: Parameter, text: str, whole: bool) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    if not whole:
        with suppress(ValueError):
            number = float(text)
            if math.isfinite(number):
                return number
    raise Usage(f"--params {parameter.name} is {'an integer' if whole else 'a number'}, not {text!r}")


def read_parts(
    form: Form,
    inputs: Sequence[str],
    prefix: str,
    shape: Shape | None,
    given: dict[str, Any],
    findings: Findings,
) -> tuple[dict[str, Array], tuple[str, ...], tuple[str, ...]]:
    """The parts out of every file that `--in` names, and the names of other arrays that lie beside them.

    Of an archive without any of the parts also the prefixes behind which it has them.

    Findings say what is wrong with a file. Raises: Usage, CannotRead.
    """
    names = {part.name for part in form.parts}
    if not inputs:
        raise Usage(
            f"--in is missing: name the files that hold {' and '.join(part.name for part in form.parts)}"
        )
    parts: dict[str, Array] = {}
    others: list[str] = []
    behind: list[str] = []
    for text in inputs:
        name, path, array = _split(names, text)
        kind = file_kind(not_empty("--in", path))
        with closing(DiskFile(Path(path))) as source:
            if name is not None and kind in ("npz", "safetensors"):
                array = array or prefix + name
                found, _ = read_arrays(source, kind, findings, wanted={array})
                if array not in found and not len(findings):
                    hint = "" if "#" in text else f"; say which one is {name}: {text}#ARRAY"
                    raise Usage(f"{path} holds no array {array!r}{hint}")
                found = {name: found[array]} if array in found else {}
            elif kind in ("npz", "safetensors"):
                found, beside = read_arrays(source, kind, findings, prefix=prefix, wanted=names)
                others += beside
                if not found:
                    behind += _prefixes(form, source, kind)
            else:
                found = _single(form, source, kind, name, text, shape, given, findings)
        if twice := parts.keys() & found.keys():
            raise Usage(f"--in gives {' and '.join(sorted(twice))} twice")
        parts |= found
    return in_form(form, parts), tuple(others), tuple(behind)


def input_paths(form: Form, inputs: Sequence[str]) -> list[Path]:
    """The files that `--in` names."""
    return [Path(_split({part.name for part in form.parts}, text)[1]) for text in inputs]


def _split(names: Container[str], text: str) -> tuple[str | None, str, str | None]:
    """`PART=FILE#ARRAY` in three; a text without a part before it is a path, whatever it holds."""
    head, equals, tail = text.partition("=")
    return (head, *_with_array(tail)) if equals and head in names else (None, text, None)


def _prefixes(form: Form, source: DiskFile, kind: FileKind) -> list[str]:
    """What stands in an archive before the names of all parts that the form needs."""
    _, every = read_arrays(source, kind, Findings(), wanted=())
    first, *rest = (part.name for part in form.parts if not part.optional)
    known = set(every)
    before = (name.removesuffix(first) for name in every if name.endswith(first))
    return [prefix for prefix in before if all(prefix + name in known for name in rest)]


def _with_array(path: str) -> tuple[str, str | None]:
    """`FILE#ARRAY` in two, where the file is an archive of arrays."""
    file, mark, array = path.partition("#")
    return (file, array) if mark and file_kind(file) in ("npz", "safetensors") else (path, None)


def _single(
    form: Form,
    source: DiskFile,
    kind: FileKind,
    name: str | None,
    text: str,
    shape: Shape | None,
    given: dict[str, Any],
    findings: Findings,
) -> dict[str, Array]:
    """The one array of a file without names."""
    needed = [part for part in form.parts if not part.optional]
    if name is None and len(needed) != 1:
        listed = ", ".join(part.name for part in form.parts)
        raise Usage(f"--in {text}: {form.name} has several parts; write PART=FILE, PART one of {listed}")
    part = needed[0] if name is None else next(part for part in form.parts if part.name == name)
    if kind == "npy":
        array = read_npy(source, findings)
    else:
        array = read_raw(source, part, _stored_shape(form, part.name, shape, given), findings)
    return {} if array is None else {part.name: array}


def _stored_shape(form: Form, name: str, shape: Shape | None, given: dict[str, Any]) -> Shape | None:
    if shape is None:
        return None
    try:
        return stored_shapes(form, shape, given).get(name)
    except SchemeRefused:
        return None  # the check of the parts says why
