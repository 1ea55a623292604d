"""Where the bytes of a value lie, and how many they are."""

from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.model import External, Value

_MAX_DIGITS = len(str(MAX_UINT64))


def check_multiple(bits: int, faults: Faults) -> bool:
    """Whether a size fills whole bytes; adds `size_not_byte_multiple` where it does not."""
    if bits % 8 == 0:
        return True
    message = f"{bits:,} bits do not fill whole bytes."
    faults.add("size_not_byte_multiple", "value", message, "a multiple of 8", bits)
    return False


def check_payload(bits: int, value: Value, inline_bytes: int, faults: Faults) -> None:
    """One source of the payload, and the length that the size gives: `payload_source`, `payload_size_mismatch`."""
    length, place = inline_bytes, "value.raw_data"
    if value.external is not None:
        place = "value.external_data"
        if inline_bytes:
            message = "the payload is inline and external."
            faults.add("payload_source", "value", message, "raw_data or external_data", "both")
            return
        stated = external_number(value.external, "length", faults)
        if "offset" in (key for key, _ in value.external.entries):
            external_number(value.external, "offset", faults)
        if stated is None:
            return
        length = stated
    elif not inline_bytes and bits:
        message = f"no payload for {bits:,} bits."
        faults.add("payload_source", "value", message, "raw_data or external_data", "neither")
        return
    if bits % 8 == 0 and length * 8 != bits:
        message = f"{length:,} bytes, where the type and its counts take {bits // 8:,}."
        faults.add("payload_size_mismatch", place, message, bits // 8, length)


def external_number(external: External, key: str, faults: Faults) -> int | None:
    """A decimal entry of an external payload; None after a `payload_source` finding."""
    texts = [text for name, text in external.entries if name == key]
    place = "value.external_data"
    if len(texts) != 1:
        message = f"{key} stands {len(texts)} times." if texts else f"no {key}."
        faults.add("payload_source", place, message, f"one {key}", len(texts))
        return None
    (text,) = texts
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) <= MAX_UINT64:
        return int(text)
    message = f"{key} is {text!r}."
    faults.add("payload_source", place, message, "an unsigned 64-bit decimal number", text)
    return None
