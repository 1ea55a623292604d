"""The content of a `scheme` job: its files by what they are there for, read whole, and what the catalogue says of them."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, Self

from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import chunks, read
from ninfer_core.schemes.structs.limits import Limits
from service.blobs import Blobs
from worker.errors import ContentDamaged
from worker.sources import StoredFile
from worker.watch import Ticket, Watch

Request = Mapping[str, Any]

_PIECE: Final = 4 << 20
_PART: Final = "part "  # before the names of parts, which may be those of other files


class Content:
    """The files of one request, open until it is left."""

    def __init__(self, blobs: Blobs, request: Request, watch: Watch) -> None:
        """Raises: CannotRead."""
        self._stack = ExitStack()
        self._files: dict[str, StoredFile] = {}
        try:
            for name, digest in _digests(request):
                sha256 = digest.removeprefix(DIGEST_PREFIX)
                file = blobs.open(sha256, name.removeprefix(_PART))
                self._stack.callback(file.close)
                self._files[name] = StoredFile(file, sha256, watch)
        except BaseException:
            self._stack.close()
            raise

    @property
    def files(self) -> int:
        """How many there are."""
        return len(self._files)

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(file.size for file in self._files.values())

    @contextmanager
    def file(self, name: str) -> Iterator[StoredFile | None]:
        """The file that is there for `name`, None where the request has none; its content did not change meanwhile.

        Raises: ContentDamaged.
        """
        file = self._files.get(name)
        yield file
        if file is not None and (change := file.changed()) is not None:
            raise ContentDamaged(file.name, change)

    def require_sound(self, ticket: Ticket) -> None:
        """Hash every file. Raises: ContentDamaged for one that is not what was stored, CannotRead, Cancelled."""
        buffer = bytearray(_PIECE)
        for file in self._files.values():
            found = hashlib.sha256()
            for piece in chunks(file, 0, file.size, buffer):
                found.update(piece)
                ticket.advance(len(piece))
            file.found(found.hexdigest())
            if (change := file.changed()) is not None:
                raise ContentDamaged(file.name, change)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def _digests(request: Request) -> Iterator[tuple[str, str]]:
    for name, part in (request.get("parts") or {}).items():
        yield _PART + name, part["digest"]
    if request.get("archive"):
        yield "archive", request["archive"]["digest"]
    for name in ("reference", "source", "struct", "payload"):
        if request.get(name):
            yield name, request[name]


def examined(request: Request, content: Content, ticket: Ticket, limits: Limits) -> dict[str, Any]:
    """The document of the check, with a verdict that says `incomplete` where something asked for was not looked at.

    `limits` are those of struct types. Raises: ContentDamaged, CannotRead, Cancelled.
    """
    content.require_sound(ticket)
    return _parts(request, content, ticket) if "form" in request else _struct(content, limits)


def _parts(request: Request, content: Content, ticket: Ticket) -> dict[str, Any]:
    from ninfer_core.schemes.catalogue.forms import FORMS
    from ninfer_core.schemes.checking import check_read, checked_json
    from ninfer_core.schemes.form import Array, Form
    from ninfer_core.schemes.numpy_files import read_npy
    from ninfer_core.schemes.reading import in_form, read_arrays, read_raw
    from ninfer_core.schemes.run import SchemeRefused, stored_shapes

    form: Form = FORMS[request["form"]]
    shape = None if request["shape"] is None else tuple(request["shape"])
    params = request["params"]
    findings = Findings()
    arrays: dict[str, Array] = {}

    def stored(name: str) -> tuple[int, ...] | None:
        if shape is None:
            return None
        try:
            return stored_shapes(form, shape, params).get(name)
        except SchemeRefused:
            return None  # the check of the parts says why

    for part in form.parts:
        with content.file(_PART + part.name) as file:
            if file is None:
                continue
            if request["parts"][part.name]["kind"] == "npy":
                array = read_npy(file, findings)
            else:
                array = read_raw(file, part, stored(part.name), findings)
            if array is not None:
                arrays[part.name] = array
        ticket.check()
    with content.file("archive") as file:
        if file is not None:
            archive, wanted = request["archive"], {part.name for part in form.parts}
            found, _ = read_arrays(file, archive["kind"], findings, prefix=archive["prefix"], wanted=wanted)
            arrays |= found

    def values(name: str) -> Array | None:
        with content.file(name) as file:
            return None if file is None else read_npy(file, findings)

    reference, source = values("reference"), values("source")
    ticket.check()
    checked = check_read(
        form,
        in_form(form, arrays),
        params,
        shape,
        tuple(findings),
        reference=reference,
        within=request["within"],
        source=source,
    )
    document = checked_json(checked)
    unseen = checked.words != "full" or (
        request["reference"] is not None and checked.against_reference is None
    )
    if document["verdict"] == "passed" and unseen:
        document["verdict"] = "incomplete"
    return document


def _struct(content: Content, limits: Limits) -> dict[str, Any]:
    from ninfer_core.schemes.struct_checking import check_text, struct_json
    from ninfer_core.schemes.structs.document import MAX_DOCUMENT_BYTES

    with content.file("payload") as file:
        payload = None if file is None else read(file, 0, file.size)
    with content.file("struct") as file:
        text = b"" if file is None else read(file, 0, min(file.size, MAX_DOCUMENT_BYTES + 1))
    return struct_json(check_text(text, "struct", payload, limits))
