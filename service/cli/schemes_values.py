"""`ninfer-gate schemes decode`, `encode` and `check`: stored arrays and the values they mean."""

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ninfer_core.containers.publish import NewFile, publish, require_free
from ninfer_core.errors import UnknownName, Usage
from ninfer_core.findings import Finding, Findings
from ninfer_core.io import DiskFile
from ninfer_core.schemes import run
from ninfer_core.schemes.catalogue.forms import form_of
from ninfer_core.schemes.checking import SCHEME_CHECK_SCHEMA, Checked, check_read, checked_json
from ninfer_core.schemes.form import Array, Form, Shape
from ninfer_core.schemes.numpy_files import read_npy
from ninfer_core.schemes.reading import file_kind
from service.cli.failures import Task, guarded
from service.cli.interrupts import Interrupted, ignore, signal_number
from service.cli.output import JsonTarget, json_target, new_file, no_document, not_empty
from service.cli.schemes_inputs import input_paths, no_such, read_params, read_parts, read_shape
from service.text import seconds, size
from service.text import shape as shape_text

_NOTHING_KEPT = "Nothing is kept: no file was published, and no partial one is left."


@dataclass(frozen=True, slots=True)
class Given:
    """What a person gave of a value: the name of its form, and texts."""

    name: str
    inputs: Sequence[str]
    prefix: str
    shape: str | None
    params: Sequence[str]


@dataclass(frozen=True, slots=True)
class Value:
    """What was read of it; findings say what is wrong with its files."""

    form: Form
    parts: Mapping[str, Array]
    beside: tuple[str, ...]
    behind: tuple[str, ...]  # prefixes with which an archive has the parts
    shape: Shape | None
    params: Mapping[str, Any]
    findings: tuple[Finding, ...]


def decode(given: Given, out: str) -> int:
    """The exit code of one decoding, after its outcome is shown."""

    def work() -> int:
        path = new_file(out)
        require_free([path])
        begin = time.monotonic()
        value = _read(given)
        checked = _checked(value, Findings())
        if checked.words != "full" or checked.shape is None:
            return _refused(path, checked.findings, value.behind)
        try:  # NaN and what else a rule objects to are values to look at; what means nothing is refused
            values = run.decode(value.form, value.parts, checked.shape, value.params)
        except run.SchemeRefused as refused:
            return _refused(path, tuple(refused.findings))
        _publish(path, *_npy(values))
        return _written(path, f"{values.dtype} {shape_text(values.shape)}", begin, checked.findings)

    return guarded(Task("schemes decode", f"decoding {given.name}", _NOTHING_KEPT), work)


def encode(name: str, values: str, params: Sequence[str], out: str) -> int:
    """The exit code of one encoding, after its outcome is shown."""

    def work() -> int:
        path = new_file(out)
        form = _form(name)
        single = form.parts[0].name if len(form.parts) == 1 else None
        if single is None and file_kind(out) != "npz":
            raise Usage(f"{form.name} has several parts; --out must end in .npz")
        if file_kind(out) in ("npy", "safetensors"):
            raise Usage(
                "--out ends in .npz, or names a file for the bytes of a form of one part, such as x.bin"
            )
        require_free([path])
        begin = time.monotonic()
        found = Findings()
        array = _array(values, "--in", found)
        if array is None:
            return _refused(path, tuple(found))
        if array.dtype.name not in ("float32", "float16", "bfloat16"):
            raise Usage(
                f"--in {values} holds {array.dtype.name}; values are encoded from float32 or a narrower float"
            )
        try:
            parts = run.encode(form, array.astype(np.float32), read_params(form, params))
        except run.SchemeRefused as refused:
            return _refused(path, tuple(refused.findings))
        archive = file_kind(out) == "npz" or single is None
        _publish(path, _npz(parts) if archive else parts[single or ""])
        listed = ", ".join(f"{part} {array.dtype} {shape_text(array.shape)}" for part, array in parts.items())
        return _written(path, listed, begin, ())

    return guarded(Task("schemes encode", f"encoding as {name}", _NOTHING_KEPT), work)


def check(given: Given, reference: str | None, within: float, source: str | None, json: str | None) -> int:
    """The exit code of one check, after its outcome is shown."""

    def work() -> int:
        inputs = input_paths(_form(given.name), given.inputs)
        target = json_target(json, [*inputs, *(Path(path) for path in (reference, source) if path)])
        if not math.isfinite(within):
            raise Usage("--within is a number: nothing is infinitely far from what it should be")
        if within and reference is None:
            raise Usage("--within says how far values may be from a reference; give --reference")
        begin = time.monotonic()
        value = _read(given)
        found = Findings()
        expected = None if reference is None else _array(reference, "--reference", found)
        original = None if source is None else _array(source, "--source", found)
        checked = _checked(value, found, reference=expected, within=within, source=original)
        if target is not None:
            target.write(checked_json(checked))
        if target is None or not target.alone:
            from service.cli.schemes_report import show_checked

            show_checked(checked, value.beside, value.behind, time.monotonic() - begin)
        return 0 if checked.verdict == "passed" else 1

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(SCHEME_CHECK_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if json == "-" else None
    return guarded(Task("schemes check", f"checking {given.name}", "Nothing is kept.", failed, first), work)


def _form(name: str) -> Form:
    try:
        return form_of(not_empty("NAME", name))
    except UnknownName as unknown:
        raise no_such(name) from unknown


def _read(given: Given) -> Value:
    form = _form(given.name)
    shape, params = read_shape(given.shape), read_params(form, given.params)
    found = Findings()
    parts, beside, behind = read_parts(form, given.inputs, given.prefix, shape, params, found)
    return Value(form, parts, beside, behind, shape, params, tuple(found))


def _checked(value: Value, more: Findings, **against: Any) -> Checked:
    found = (*value.findings, *more)
    return check_read(value.form, value.parts, value.params, value.shape, found, **against)


def _array(path: str, option: str, findings: Findings) -> Array | None:
    if file_kind(not_empty(option, path)) != "npy":
        raise Usage(f"{option} {path} is no .npy file")
    with closing(DiskFile(Path(path))) as source:
        return read_npy(source, findings)


def _npy(array: Array) -> tuple[bytes, Array]:
    """The header of a NumPy file, and what follows it."""
    stream = BytesIO()
    shown = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, shown)
    return stream.getvalue(), array


def _npz(parts: Mapping[str, Array]) -> bytes:
    stream = BytesIO()
    np.savez(stream, allow_pickle=False, **dict(parts))
    return stream.getvalue()


def _publish(path: Path, *pieces: bytes | Array) -> None:
    """A new file out of pieces, one after another. Raises: CannotWrite."""
    views = [
        piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data
        for piece in pieces
    ]
    new = NewFile(path, sum(map(len, views)))
    try:
        at = 0
        for view in views:
            new.write(view, at)
            at += len(view)
        publish([new])
        ignore()  # the file is there: nothing may claim that it is not
    except KeyboardInterrupt as interrupt:
        if os.path.lexists(path):
            kept = f"The file was written all the same, and is whole: {path}."
            raise Interrupted(signal_number(interrupt), kept) from interrupt
        raise
    finally:
        new.close()


def _refused(path: Path, findings: Sequence[Finding], behind: Sequence[str] = ()) -> int:
    from service.cli.findings_view import count_line, show_findings
    from service.cli.schemes_report import show_behind
    from service.cli.screen import console, styled

    screen = console()
    screen.print(styled("  ", ("REFUSED", "bold red"), f"   {path}   nothing was written"))
    show_findings(screen, findings, more="`schemes check --json FILE` has them all")
    show_behind(screen, behind)
    screen.print()
    screen.print(styled("  ", ("REFUSED", "bold red"), f"; {count_line(findings)}."))
    return 1


def _written(path: Path, what: str, begin: float, findings: Sequence[Finding]) -> int:
    from service.cli.findings_view import show_findings
    from service.cli.screen import console, hanging, styled

    screen = console()
    took = f"in {seconds(time.monotonic() - begin)}"
    lead = styled("  ", ("WRITTEN", "bold green"), "   ")
    screen.print(hanging(lead, f"{path}   {what}   {size(path.stat().st_size)}   {took}", screen.width))
    show_findings(screen, findings)
    return 0
