"""What a form of a quantization scheme is: the arrays it is stored in, the numbers they mean, and the rules they obey.

A scheme has a `literal` form, the catalogue's own structure closed by the rules R1 to R17 of the scheme specification,
and `file` forms, the layouts that model files hold. A form is data and functions; what all forms share (parameters,
parts, shapes, the length of a result) is checked in one place, `ninfer_core.schemes.run`, before a function is called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.structs.model import Declared

Shape = tuple[int, ...]
Array = NDArray[Any]
Values = NDArray[np.float32]
Parts = Mapping[str, Array]  # the stored arrays by name, with the dtypes that files give them
Params = Mapping[str, Any]  # complete: every parameter of the form, defaults filled in

REQUIRED: Final = object()
Kind = Literal["literal", "file"]
ParameterKind = Literal["integer", "number", "text", "flag", "integers", "numbers"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number or a word that the stored arrays do not say and the meaning depends on."""

    name: str
    kind: ParameterKind
    meaning: str
    default: Any = REQUIRED
    choices: tuple[Any, ...] = ()  # closed, where not empty


@dataclass(frozen=True, slots=True)
class Part:
    """A stored array: a tensor of a checkpoint, or the whole `payload` of a value.

    `axes` shows its shape for people, as `[K*bits/32, N]`; `Form.stored` gives the numbers. `dtypes` are numpy or
    ml_dtypes names; small floats and E8M0 are taken as uint8 words as well.
    """

    name: str
    dtypes: tuple[str, ...]
    axes: str
    meaning: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """Some bits of one stored word and what they hold, for the drawn layout; the first slice is lowest."""

    name: str
    bits: int


def stream_word(label: str, bits: int, word_bits: int) -> tuple[Slice, ...]:
    """The slices of the first word of a low-bits-first stream; the last one may be cut off."""
    starts = range(0, word_bits, bits)
    return tuple(Slice(f"{label}{start // bits}", min(bits, word_bits - start)) for start in starts)


# The functions of a form. None of them sees a part of another dtype or shape than the form states.
Stored = Callable[[Shape, Params], Mapping[str, Shape]]  # exact shapes of the parts; raises SchemeRefused
Infer = Callable[[Mapping[str, Shape], Params], Shape]  # the logical shape that stored shapes imply
Decode = Callable[[Parts, Shape, Params], Values]  # binary32 throughout (R14), shape as asked
Encode = Callable[[Values, Params], dict[str, Array]]
Declare = Callable[[Shape, Params], Declared]
Word = Callable[[Params], tuple[Slice, ...]]
Rule = Callable[
    [Parts, Shape, Params, Findings], None
]  # what words may stand in the parts: total over any words


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which a scheme is stored.

    `axes` names the dimensions of the decoded result (`("out", "in")`, `("in", "out")`, `("values",)`). `decode` is the
    plain definition; `fast`, where there is one, is compiled and equals it bit for bit. `arithmetic` says what equality
    with other implementations means: "exact" binary32, or the bound that an order of sums leaves.
    """

    name: str  # lower case, as its vectors are called: "gptq", "ggml_q4_k", "tq1_0_literal"
    kind: Kind
    summary: str
    axes: tuple[str, ...]
    parts: tuple[Part, ...]
    parameters: tuple[Parameter, ...]
    stored: Stored
    decode: Decode
    oracle: str  # who else proved it: package and version, as the vectors state
    infer: Infer | None = None
    rules: tuple[Rule, ...] = ()
    encode: Encode | None = None
    encoding: str = ""  # what `encode` promises: "canonical", "nearest", "plain"; empty without one
    fast: Decode | None = None
    arithmetic: str = "exact"
    declare: Declare | None = (
        None  # the struct type of a one-part form; forms of several parts have one field for each
    )
    word: Word | None = None  # what one stored word of the codes holds; None where the struct type says it
    notes: str = ""
