"""Tensor entries of a safetensors header: closed members, exact sizes, ranges that tile the data.

Offsets here count from the start of the data, as the header spells them.
"""

from dataclasses import dataclass
from typing import Final, TypeGuard

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.layouts.base import U64_MAX, Shape
from ninfer_core.sources.dtypes import DTYPES, Dtype
from ninfer_core.strict_json import Json, Members

MEMBERS: Final = ("dtype", "shape", "data_offsets")


@dataclass(frozen=True, slots=True)
class Entry:
    """A well-formed entry: bytes [begin, end) of the data."""

    name: str
    dtype: Dtype
    shape: Shape
    begin: int
    end: int


class EntryReader:
    """Reads the entries of one header over `data_bytes` bytes of data, collecting every fault."""

    def __init__(self, file: str, data_bytes: int, findings: Findings) -> None:
        self._file = file
        self._data_bytes = data_bytes
        self._findings = findings

    def read(self, members: Members) -> tuple[Entry, ...]:
        """The well-formed entries in header order."""
        entries = []
        for name, value in members.items():
            entry = self._entry(name, value)
            if entry is not None:
                entries.append(entry)
        self._tile(entries, complete=len(entries) == len(members) and not members.duplicates)
        return tuple(entries)

    def _add(
        self, slug: str, name: str, message: str, expected: object, found: object, **where: object
    ) -> None:
        self._findings.add(
            f"structure.{slug}",
            f"{self._file}: tensor {strict_json.show(name)}: {message}",
            object=name,
            where={"file": self._file, "tensor": name, **where},
            expected=expected,
            found=found,
        )

    def _entry(self, name: str, value: Json) -> Entry | None:
        if not isinstance(value, Members):
            kind = strict_json.type_name(value)
            self._add("tensor_entry_type", name, "the entry is not an object.", "an object", kind)
            return None
        for member in MEMBERS:
            if member not in value:
                self._add(
                    "tensor_member_missing", name, f"no member {member}.", member, "nothing", member=member
                )
        for member in value:
            if member not in MEMBERS:
                message = f"unexpected member {strict_json.show(member)}."
                self._add(
                    "tensor_member_unexpected", name, message, ", ".join(MEMBERS), member, member=member
                )
        dtype = self._dtype(name, value["dtype"]) if "dtype" in value else None
        shape = self._shape(name, value["shape"]) if "shape" in value else None
        span = self._span(name, value["data_offsets"]) if "data_offsets" in value else None
        required = self._required(name, dtype, shape) if dtype is not None and shape is not None else None
        if dtype is None or shape is None or span is None or required is None:
            return None
        begin, end = span
        if end - begin != required:
            self._add(
                "tensor_size_mismatch",
                name,
                f"shape {strict_json.show(list(shape))} of {dtype.name} needs {required:,} bytes, its range has {end - begin:,}.",
                f"{required:,} bytes",
                f"{end - begin:,} bytes",
                range_bytes=end - begin,
                required=required,
            )
            return None
        return Entry(name, dtype, shape, begin, end)

    def _dtype(self, name: str, value: Json) -> Dtype | None:
        if isinstance(value, str) and value in DTYPES:
            return DTYPES[value]
        found = strict_json.show(value)
        self._add("tensor_dtype_unknown", name, f"unknown dtype {found}.", ", ".join(DTYPES.names), found)
        return None

    def _shape(self, name: str, value: Json) -> Shape | None:
        if isinstance(value, list) and all(is_u64(size) for size in value):
            return tuple(value)
        found = strict_json.show(value)
        self._add(
            "tensor_shape_invalid", name, f"invalid shape {found}.", "an array of unsigned integers", found
        )
        return None

    def _span(self, name: str, value: Json) -> tuple[int, int] | None:
        if not (isinstance(value, list) and len(value) == 2 and all(is_u64(edge) for edge in value)):
            found = strict_json.show(value)
            message = f"invalid data_offsets {found}."
            self._add("tensor_offsets_invalid", name, message, "two unsigned integers", found)
            return None
        begin, end = value
        if end < begin:
            message = f"the range [{begin}, {end}) ends before it begins."
            self._add("tensor_range_invalid", name, message, f"at least {begin}", end, begin=begin, end=end)
        elif end > self._data_bytes:
            missing = end - self._data_bytes
            self._add(
                "tensor_range_past_end",
                name,
                f"the range [{begin}, {end}) reaches {missing:,} bytes past the end of the file.",
                f"at most {self._data_bytes}",
                end,
                begin=begin,
                end=end,
                missing=missing,
            )
        else:
            return begin, end
        return None

    def _required(self, name: str, dtype: Dtype, shape: Shape) -> int | None:
        # Step by step, as a reader with 64-bit integers multiplies: a later zero does not undo an overflow.
        bits = 1
        for factor in (*shape, dtype.bits):
            bits *= factor
            if bits > U64_MAX:
                found = strict_json.show(list(shape))
                message = f"shape {found} of {dtype.name} does not fit 64 bits."
                self._add("tensor_size_overflow", name, message, f"at most {U64_MAX} bits", found)
                return None
        if bits % 8:
            message = f"{bits:,} bits of {dtype.name} do not fill whole bytes."
            self._add("tensor_bits_partial", name, message, "a multiple of 8 bits", f"{bits} bits")
            return None
        return bits // 8

    def _tile(self, entries: list[Entry], complete: bool) -> None:
        """Overlaps among well-formed ranges; holes only when every range is known."""
        reach, owner = 0, None
        for entry in sorted(entries, key=lambda e: (e.begin, e.end)):
            if owner is not None and entry.begin < reach:
                self._overlap(owner, entry, min(reach, entry.end))
            elif entry.begin > reach and complete:
                self._hole("tensor_gap", reach, entry.begin, "no tensor owns the bytes")
            if entry.end > reach:
                reach, owner = entry.end, entry
        if reach < self._data_bytes and complete:
            self._hole("data_uncovered", reach, self._data_bytes, "no tensor owns the last bytes")

    def _overlap(self, first: Entry, second: Entry, end: int) -> None:
        names = [first.name, second.name]
        self._findings.add(
            "structure.tensor_overlap",
            f"{self._file}: tensors {strict_json.show(names[0])} and {strict_json.show(names[1])} share a place.",
            object=names[1],
            where={"file": self._file, "tensors": names, "begin": second.begin, "end": end},
            expected=f"a range from {first.end} on",
            found=f"[{second.begin}, {second.end})",
        )

    def _hole(self, slug: str, begin: int, end: int, message: str) -> None:
        self._findings.add(
            f"structure.{slug}",
            f"{self._file}: {message} [{begin}, {end}) of the data.",
            where={"file": self._file, "begin": begin, "end": end},
            expected="ranges that tile the data",
            found=f"{end - begin:,} bytes of no tensor",
        )


def is_u64(value: Json) -> TypeGuard[int]:
    """A JSON integer that fits 64 unsigned bits; booleans and numbers with a fraction are none."""
    return type(value) is int and 0 <= value <= U64_MAX
