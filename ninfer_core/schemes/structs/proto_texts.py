"""Text in protobuf messages: the draft's syntax does not make readers refuse strings that are no UTF-8."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor


def broken_text(message: Any, path: str = "") -> str | None:
    """The path of the first string of a message or of those inside it that is no UTF-8; None where all are.

    Such a string comes as bytes and is equal to no text.
    """
    for field, value in message.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        if field.type == FieldDescriptor.TYPE_STRING:
            items = value if field.is_repeated else (value,)
            if any(isinstance(item, bytes) for item in items):
                return here
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            # As deep as protobuf's reader goes, which is a hundred levels.
            for number, item in enumerate(value) if field.is_repeated else ((None, value),):
                found = broken_text(item, here if number is None else f"{here}[{number}]")
                if found is not None:
                    return found
    return None
