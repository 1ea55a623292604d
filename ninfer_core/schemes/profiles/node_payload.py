"""Words of leaves into the bytes of a payload as nodes of an ONNX function: the inverse of the view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.structs.layout import Laid, Parts, Repeated, Scalar, Shared
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.sizes import laid_out

if TYPE_CHECKING:
    from ninfer_core.schemes.functions.build import Builder, Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the payload for each index around it: UINT8 [*batch, count], `width` bits of it in each element."""

    tensor: "Tensor"
    width: int
    count: int


class Payload:
    """Puts the words of leaves together; `words` by path, [*counts around it], unsigned or INT64 and not negative."""

    def __init__(self, builder: "Builder", words: Mapping[str, "Tensor"]) -> None:
        self._build = builder
        self._words = words

    def bytes_of(self, declared: Declared) -> "Tensor":
        """The payload UINT8 [size]; leaves without words are zero. Raises: StructFault."""
        return self._of(laid_out(declared), "", ()).tensor

    def _of(self, laid: Laid, path: str, batch: Shape) -> Piece:
        build = self._build
        match laid.body:
            case Scalar():
                return self._scalar(path, laid.bits, batch)
            case Shared(laid=inner):
                return self._of(inner, path, batch)
            case Repeated(count=count, of=of):
                one = self._of(of, path, (*batch, count))
                flat = build.reshape(one.tensor, *batch, count * one.count)
                return whole(build, Piece(flat, one.width, count * one.count), batch)
            case Parts(parts=parts):
                pieces = []
                for part in parts:
                    if part.laid is None:
                        continue
                    packed = isinstance(part.laid.body, Scalar) and part.laid.body.packed
                    name = f"{path}.{part.name}" if packed or path else part.name
                    pieces.append(self._of(part.laid, name, batch))
                return whole(build, self._joined(pieces, batch), batch)

    def _scalar(self, path: str, bits: int, batch: Shape) -> Piece:
        build = self._build
        # Widths that divide a byte stay one element each; wider ones become bytes, others single bits.
        width = bits if bits in (1, 2, 4, 8) else 8 if bits % 8 == 0 else 1
        count = bits // width
        if path not in self._words:
            zero = build.constant(0, "UINT8")
            return Piece(build.expand(zero, *batch, count), width, count)
        word = self._words[path]
        if count == 1:
            return Piece(build.reshape(build.cast(word, "UINT8"), *batch, 1), width, 1)
        return Piece(spread(build, word, bits, width, batch), width, count)

    def _joined(self, pieces: Sequence[Piece], batch: Shape) -> Piece:
        width = min((piece.width for piece in pieces), default=8)
        if not pieces:
            return Piece(self._build.expand(self._build.constant(0, "UINT8"), *batch, 0), 8, 0)
        narrow = [self._narrowed(piece, width, batch) for piece in pieces]
        joined = self._build.concat([piece.tensor for piece in narrow], len(batch))
        return Piece(joined, width, sum(piece.count for piece in narrow))

    def _narrowed(self, piece: Piece, width: int, batch: Shape) -> Piece:
        if piece.width == width:
            return piece
        times = piece.width // width
        apart = self._build.fields(piece.tensor, range(0, piece.width, width), width, (*batch, piece.count))
        count = piece.count * times
        return Piece(self._build.reshape(apart, *batch, count), width, count)


def whole(build: "Builder", piece: Piece, batch: Shape) -> Piece:
    """The same run in bytes, if it is one of whole bytes."""
    if piece.width == 8 or piece.width * piece.count % 8:
        return piece
    per_byte = 8 // piece.width
    count = piece.count // per_byte
    groups = build.reshape(piece.tensor, *batch, count, per_byte)
    placed = build.cast(build.left(groups, range(0, 8, piece.width)), "INT32")
    summed = build.op("ReduceSum", placed, build.constant([-1], "INT64"), keepdims=0)
    return Piece(build.cast(summed, "UINT8"), 8, count)


def spread(build: "Builder", word: "Tensor", bits: int, width: int, outer: Shape) -> "Tensor":
    """Each word [*outer] as UINT8 [*outer, bits / width], `width` bits in each, the lowest first."""
    carrier = next(f"UINT{size}" for size in (8, 16, 32, 64) if bits <= size)
    return build.cast(build.fields(build.cast(word, carrier), range(0, bits, width), width, outer), "UINT8")


def stream(build: "Builder", codes: "Tensor", bits: int, count: int, outer: Shape) -> "Tensor":
    """Codes [*outer, count] as a low-bits-first stream of bytes for each of `outer` (R1), its last bits zero."""
    if bits in (1, 2, 4, 8):
        width, total = bits, count
        flat = build.cast(codes, "UINT8")
    else:
        width, total = 1, count * bits
        flat = build.reshape(spread(build, codes, bits, 1, (*outer, count)), *outer, total)
    missing = -total * width % 8 // width
    if missing:
        filling = build.expand(build.constant(0, "UINT8"), *outer, missing)
        flat = build.concat([build.reshape(flat, *outer, total), filling], len(outer))
    return whole(build, Piece(flat, width, total + missing), outer).tensor
