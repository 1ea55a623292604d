"""What the OpenAPI document says of headers and bodies of tus."""

from typing import Any, Final

from service.api import examples, tus

ABILITIES: Final[dict[int | str, dict[str, Any]]] = {
    204: {"description": "Version, extensions, largest size and checksums, as headers.", "content": {}}
}


def _header(name: str, example: str, what: str, required: bool = False) -> dict[str, Any]:
    schema = {"type": "string", "examples": [example]}
    return {"name": name, "in": "header", "required": required, "description": what, "schema": schema}


def _bytes(required: bool) -> dict[str, Any]:
    content = {
        "schema": {"type": "string", "format": "binary"},
        "examples": {"all_of_it": {"summary": "all of it", "value": examples.CONTENT}},
    }
    return {"required": required, "content": {tus.MEDIA_TYPE: content}}


_VERSION: Final = _header("Tus-Resumable", tus.VERSION, "The version of tus that is spoken.", required=True)
_CHECKSUM: Final = _header("Upload-Checksum", examples.UPLOAD_CHECKSUM, "Algorithm, a space, and base64.")
_LENGTH: Final = _header(
    "Upload-Length", str(len(examples.CONTENT)), "Bytes of the whole content.", required=True
)
_METADATA: Final = _header(
    "Upload-Metadata",
    examples.UPLOAD_METADATA,
    "`filename` is kept for people; with `sha256` (64 hex digits) other content ends the upload as failed.",
)
_OFFSET: Final = _header("Upload-Offset", "0", "Where the bytes go: where the upload is.", required=True)

LOOK: Final[dict[str, Any]] = {"parameters": [_VERSION]}
BEGIN: Final[dict[str, Any]] = {
    "parameters": [_VERSION, _LENGTH, _METADATA, _CHECKSUM],
    "requestBody": _bytes(required=False),
}
GO_ON: Final[dict[str, Any]] = {
    "parameters": [_VERSION, _OFFSET, _CHECKSUM],
    "requestBody": _bytes(required=True),
}
