"""The facts that set the three framing revisions apart (containers, both chapters)."""

from collections.abc import Mapping
from dataclasses import dataclass

from ninfer_core.formats import BF16, FORMATS, FP32, GROUPED, I32, NumericFormat
from ninfer_core.layouts import CONTIGUOUS_LE, LAYOUTS, RESOURCE_ENCODING, ROW_SPLIT
from ninfer_core.layouts.base import Layout

MAGIC_STEM = b"NINFER\0"
PART_MAGIC = b"NINPRT\0\x03"
PART_HEADER_BYTES = 32
PART_PAYLOAD_OFFSET = 4096
PAGE = 4096


@dataclass(frozen=True, slots=True)
class Revision:
    """Spellings and header of one revision; `key` is the member that names an object."""

    number: int
    header_bytes: int  # before the JSON
    key: str
    formats: Mapping[str, NumericFormat]
    layouts: Mapping[str, Layout]
    encoding: str

    @property
    def magic(self) -> bytes:
        """The first eight bytes of an entry file."""
        return MAGIC_STEM + bytes([self.number])

    def spell_format(self, fmt: NumericFormat) -> str:
        """How this revision writes a format."""
        return next(name for name, entry in self.formats.items() if entry is fmt)

    def spell_layout(self, layout: Layout) -> str:
        """How this revision writes a layout."""
        return next(name for name, entry in self.layouts.items() if entry is layout)


_REVISION_1_FORMATS: tuple[NumericFormat, ...] = (BF16, FP32, I32, *GROUPED)
_REVISION_3_FORMATS = {
    "bf16": "BF16",
    "fp32": "FP32",
    "int32": "I32",
    "q4_g64_fp16": "Q4G64_F16S",
    "q5_g64_fp16": "Q5G64_F16S",
    "q6_g64_fp16": "Q6G64_F16S",
    "q8_g32_fp16": "W8G32_F16S",
    "nvfp4": "NVFP4",
    "fp8_e4m3fn_row_bf16": "FP8_E4M3FN_ROW_BF16S",
}
_REVISION_3_LAYOUTS = {
    "contiguous_le_v1": "contiguous-le-v1",
    "row_split_k128_v1": "row-split-k128-v1",
    "block_scale_k16_m128x4_v1": "blockscale-k16-m128x4-v1",
    "row_scale_v1": "row-scale-v1",
}

REVISIONS: Mapping[int, Revision] = {
    1: Revision(
        1,
        16,
        "name",
        {fmt.name: fmt for fmt in _REVISION_1_FORMATS},
        {layout.name: layout for layout in (CONTIGUOUS_LE, ROW_SPLIT)},
        RESOURCE_ENCODING,
    ),
    2: Revision(
        2,
        16,
        "name",
        {fmt.name: fmt for fmt in FORMATS},
        {layout.name: layout for layout in LAYOUTS},
        RESOURCE_ENCODING,
    ),
    3: Revision(
        3,
        32,
        "id",
        {spelled: FORMATS[name] for spelled, name in _REVISION_3_FORMATS.items()},
        {spelled: LAYOUTS[name] for spelled, name in _REVISION_3_LAYOUTS.items()},
        "raw_bytes_v1",
    ),
}

# Members of the root, required and optional.
ROOT_MEMBERS: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]] = {
    1: (("model_id", "objects"), ()),
    2: (("identity", "objects"), ()),
    3: (("components", "objects", "bindings", "uses", "files"), ("metadata", "provenance")),
}
