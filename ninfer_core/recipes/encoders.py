"""The member `encode`: its closed list of names, and which formats and values each goes with."""

from collections.abc import Sequence
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.encoders import PROFILES
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, DirectFormat, NumericFormat
from ninfer_core.recipes.bundles import BundleKind, BundleTree, Tree
from ninfer_core.retired import retirement

COPY_WORDS: Final = "copy_words"
COPY_BYTES: Final = "copy_bytes"
COPY_NVFP4: Final = "copy_nvfp4_words"
COPY_FP8_ROWS: Final = "copy_fp8_row_words"
COPIES: Final = {  # what the names of `encode` mean that are no encoder profile
    COPY_WORDS: "Words of the value's own type, unchanged, into BF16, FP32 or I32; a change of type is named by `cast` or "
    "`widen`.",
    COPY_BYTES: "A resource is its file, byte for byte.",
    COPY_NVFP4: "Codes, scales and divisor of an NVFP4 matrix, unchanged, into NVFP4.",
    COPY_FP8_ROWS: "Codes and row scales of an FP8 matrix, unchanged, into FP8_E4M3FN_ROW_BF16S.",
}
ENCODERS: Final = (*COPIES, *PROFILES.names)

_DIRECT_OF_DTYPE: Final = {"BF16": "BF16", "F32": "FP32", "I32": "I32"}
_COPIES: Final[dict[str, tuple[BundleKind, NumericFormat, str]]] = {
    COPY_NVFP4: ("nvfp4", NVFP4, "nvfp4_matrix"),
    COPY_FP8_ROWS: ("fp8_row", FP8_E4M3FN_ROW_BF16S, "fp8_row_matrix"),
}
_NUMBERS: Final = ("BF16", "F16", "F32", "F64")
_CONVERSIONS: Final = {
    ("BF16", "FP32"): "widen to FP32",
    ("F32", "BF16"): "cast to BF16",
    ("F16", "BF16"): "cast to BF16",
    ("I64", "I32"): "cast to I32",
}


def read_encoder(faults: Faults, fields: Fields) -> str | None:
    """The member `encode`: a known encoder, or None after a finding."""
    encode = fields.text("encode")
    if encode is not None and encode not in ENCODERS:
        known, shown = ", ".join(ENCODERS), strict_json.show(encode)
        former = retirement(PROFILES.what, encode)
        reason = f": {former}" if former else ""
        message = f"unknown encoder {shown}{reason} (known: {known})."
        faults.add("encoder_unknown", fields.path("encode"), message, known, shown)
        return None
    return encode


class Agreement:
    """Whether encoder, format and value of one rule go together; what does not is a finding about `objects`."""

    def __init__(self, faults: Faults, path: Path, tree: Tree) -> None:
        self._faults, self._path, self._tree = faults, path, tree

    def check(self, encode: str, fmt: NumericFormat, objects: Sequence[str]) -> None:
        """Of one of our encoders."""
        if encode in _COPIES:
            self._check_copy(encode, fmt, objects)
        elif isinstance(self._tree, BundleTree):
            message = f"a quantized matrix is only ever copied, not made by {encode}."
            expected = next(name for name, (kind, _, _) in _COPIES.items() if kind == self._tree.kind)
            self._add("encoder_dtype", message, expected, encode, objects)
        elif encode == COPY_WORDS:
            self._check_words(self._tree.dtype, fmt, objects)
        else:
            self._check_profile(encode, self._tree.dtype, fmt, objects)

    def check_foreign(self, producer: str, fmt: NumericFormat, objects: Sequence[str]) -> None:
        """Of an encoder that is not ours, which may make any quantized format of numbers."""
        if isinstance(fmt, DirectFormat):
            message = f"words of {fmt.name} are copied or converted by name, not made by {producer}."
            self._add("encoder_format", message, "a quantized format", fmt.name, objects)
        dtype = f"a {self._tree.kind} matrix" if isinstance(self._tree, BundleTree) else self._tree.dtype
        if dtype not in _NUMBERS:
            expected = ", ".join(_NUMBERS)
            self._add(
                "encoder_dtype", f"{producer} cannot be compared with {dtype}.", expected, dtype, objects
            )

    def _add(self, slug: str, message: str, expected: object, found: object, objects: Sequence[str]) -> None:
        self._faults.add(slug, self._path, message, expected, found, objects)

    def _check_copy(self, encode: str, fmt: NumericFormat, objects: Sequence[str]) -> None:
        kind, made, operation = _COPIES[encode]
        if fmt != made:
            self._add("encoder_format", f"{encode} does not make {fmt.name}.", made.name, fmt.name, objects)
        if not isinstance(self._tree, BundleTree) or self._tree.kind != kind:
            found = self._tree.kind if isinstance(self._tree, BundleTree) else f"words of {self._tree.dtype}"
            self._add("encoder_dtype", f"{encode} does not take {found}.", operation, found, objects)

    def _check_words(self, dtype: str, fmt: NumericFormat, objects: Sequence[str]) -> None:
        if not isinstance(fmt, DirectFormat):
            message = f"{COPY_WORDS} stores direct formats; {fmt.name} needs an encoder."
            encoders = ", ".join((*_COPIES, *PROFILES.names))
            self._add("encoder_format", message, encoders, COPY_WORDS, objects)
        elif _DIRECT_OF_DTYPE.get(dtype) != fmt.name:
            remedy = _CONVERSIONS.get((dtype, fmt.name))
            advice = f"name the conversion: {remedy}" if remedy else "there is no conversion between the two"
            message = f"words of {dtype} would be stored as {fmt.name}; {advice}."
            self._add("implicit_conversion", message, fmt.name, dtype, objects)

    def _check_profile(self, encode: str, dtype: str, fmt: NumericFormat, objects: Sequence[str]) -> None:
        formats = PROFILES[encode].formats
        if fmt not in formats:
            expected = ", ".join(known.name for known in formats)
            self._add("encoder_format", f"{encode} does not make {fmt.name}.", expected, fmt.name, objects)
        taken = PROFILES[encode].dtypes
        if dtype not in taken:
            self._add("encoder_dtype", f"{encode} does not take {dtype}.", ", ".join(taken), dtype, objects)
