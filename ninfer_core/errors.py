"""Exceptions: reasons why a question could not be answered. Answers themselves are findings."""


class NinferError(Exception):
    """Root of every error this package raises on purpose. `code` is stable."""

    code = "error"


class UnknownName(NinferError):
    """A name that a closed registry does not hold; `reason` says what became of a retired one."""

    code = "unknown_name"

    def __init__(self, what: str, name: str, known: tuple[str, ...], reason: str | None = None) -> None:
        because = "" if reason is None else f": {reason}"
        super().__init__(f"{name!r} is not a registered {what}{because} (registered: {', '.join(known)})")
        self.what = what
        self.name = name
        self.known = known


class SizeOverflow(NinferError):
    """A size that does not fit an unsigned 64-bit integer."""

    code = "size_overflow"


class IllegalShape(NinferError):
    """A shape that a layout or a scheme does not take; `rule` is the rule it breaks."""

    code = "illegal_shape"

    def __init__(self, shape: tuple[int, ...], rule: str) -> None:
        super().__init__(f"shape {list(shape)} is not allowed: {rule}")
        self.shape = shape
        self.rule = rule


class IllegalPair(NinferError):
    """A format and a layout that do not go together."""

    code = "illegal_pair"


class CutShort(NinferError):
    """A file ended before the bytes that were asked for."""

    code = "cut_short"

    def __init__(self, name: str, offset: int, wanted: int, got: int) -> None:
        super().__init__(f"{name}: wanted {wanted:,} bytes at offset {offset:,}, got {got:,}")
        self.name = name
        self.offset = offset
        self.wanted = wanted
        self.got = got


class CannotRead(NinferError):
    """A file that could not be opened or read; the message says which and why."""

    code = "cannot_read"


class LeadsOutside(CannotRead):
    """A name out of a file that is a link to somewhere else than the folder it belongs to."""

    code = "leads_outside"


class CannotWrite(NinferError):
    """An output that could not be written or published."""

    code = "cannot_write"


class NameTaken(CannotWrite):
    """An output whose name another file has; nothing is ever overwritten."""


class Usage(NinferError):
    """The question itself makes no sense: unknown check, ambiguous folder, missing argument."""

    code = "usage"


class OutOfStep(NinferError):
    """Outcomes that are not those of the tasks at hand: another file, other checks, or another version made them."""

    code = "out_of_step"


class DeviceFailed(NinferError):
    """A device that gave no answer: its driver failed, or one row of the work does not fit its memory."""

    code = "device_failed"
