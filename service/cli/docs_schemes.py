"""The page about the catalogue of schemes, made from its rows and forms."""

from collections.abc import Iterator
from typing import Final

from ninfer_core.schemes.catalogue import SCHEMES, Scheme
from ninfer_core.schemes.catalogue.examples import examples_of
from ninfer_core.schemes.catalogue.facts import bits_per_weight, rounded, span
from ninfer_core.schemes.catalogue.forms import FORMS, forms_of, schemes_of
from ninfer_core.schemes.catalogue.rules import RULES
from ninfer_core.schemes.form import REQUIRED, Form, Parameter
from ninfer_core.schemes.run import CannotEncode, complete
from service.text import UNKNOWN

SCHEMES_PAGE: Final = "schemes.md"
_HEAD: Final = """\
# Schemes

The catalogue of foreign quantizations: typed structures over byte buffers, and what their numbers mean. It is a registry
of its own. None of its names, decoders or encoders is a format, a layout or an alias of a `.ninfer` file, an `encode` of a
recipe or an option of `convert`; its NVFP4 and FP8 are other things than the registry's.

It is made from a page about quantization profiles for ONNX, of August 2026: *the seed*. A scheme has a *literal* form,
the structure that the seed declares, closed by [the rules R1 to R17](#the-rules) where it says too little or contradicts
itself, and *file* forms, the layouts that files hold. The two may share nothing but the name. `ninfer-gate schemes` shows the
same with sizes and drawn layouts, and decodes, encodes and checks stored arrays ([cli](cli.md#schemes)).

Bits per weight are computed from the forms, of a 4096 by 4096 weight unless the form is smaller: *claimed* is what the
seed's table prints, *declared* what its own structures take, *in files* what users have. Encoders are *canonical* where a
rule fixes the bytes, *nearest* where each code is the nearest value to scales taken by rule, *plain* where a tool would
search or calibrate and this one rounds to the grid.

A decoder of standard ONNX operators stands in the type of every form whose numbers they can say. Literal forms have an
encoder of such operators beside it, equal byte for byte to the one that runs here, wherever a rule and exact operators
fix the bytes: each form below says so, or why not. It stops at values that are refused here, such as NaN without a code.
Of file forms only the decoder is such a function; where they can be encoded, the encoder is the one that runs here.

This page is generated from the catalogue by `python -m service.cli.docs`; a test compares the two.

## In Python

```python
import numpy as np

from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.checking import check_parts
from ninfer_core.schemes.run import decode, encode, implied_shape

form = FORMS["gptq"]
params = {"bits": 4, "group_size": 128}
values = np.linspace(-1, 1, 128 * 8, dtype=np.float32).reshape(128, 8)

parts = encode(form, values, params)  # arrays by the names of the form's parts
decoded = decode(form, parts, implied_shape(form, parts, params), params)
checked = check_parts(form, parts, params, source=values)
print(sorted(parts), decoded.shape, checked.verdict)
```

`decode` and `encode` raise `SchemeRefused`, whose `findings` say all that does not fit; `check_parts` never does, and says it
in its own. `ninfer_core.schemes.reading` takes parts out of files.

## Which convention does a file follow?

Some labels hide two: zero points stored less one or not (`gptq`, `gptq_v2`), a scale of the tensor that multiplies or divides
(NVFP4), the first value in the high or the low half of a byte (NF4). `schemes check` names the convention that it read by, and
what speaks against it: the content alone, where it can tell, and with `--source` or `--reference` the error of either
reading. A contradiction is `scheme.dialect_contradicted`, an error, or an advisory where its confidence is weak: zero points
of one value tell in symmetric schemes, and hardly in others.
"""


def schemes_page() -> str:
    """The page: one table of all schemes, then each of them with its contradictions, then every form."""
    lines = [_HEAD, "## The rows\n", *_table(), "", "## What the seed gets wrong\n"]
    for scheme in SCHEMES:
        lines += _scheme(scheme)
    lines += ["## The rules\n", *(f"- **{name}**: {text}" for name, text in RULES.items()), "", "## Forms\n"]
    for form in FORMS:
        lines += _form(form)
    return "\n".join(lines).rstrip() + "\n"


def _table() -> Iterator[str]:
    yield "| row | scheme | title | profiles | claimed | declared | in files | literal forms | file forms | encode | oracle |"
    yield "|---:|---|---|---|---|---|---|---|---|---|---|"
    for scheme in SCHEMES:
        forms = forms_of(scheme)
        cells = (
            "" if scheme.row is None else str(scheme.row),
            f"`{scheme.name}`",
            scheme.title,
            scheme.profiles,
            scheme.claimed or UNKNOWN,
            span(scheme, "literal") or UNKNOWN,
            span(scheme, "file") or UNKNOWN,
            _links(scheme.literal),
            _links(scheme.file),
            _encoding(forms),
            "; ".join(dict.fromkeys(form.oracle for form in forms)),
        )
        yield "| " + " | ".join(cells) + " |"


def _encoding(forms: tuple[Form, ...]) -> str:
    """`no`, or how many can be encoded and what that promises."""
    able = [form for form in forms if form.encode is not None]
    promises = ", ".join(dict.fromkeys(form.encoding for form in able))
    if not able:
        return "no"
    return (
        f"yes ({promises})"
        if len(able) == len(forms)
        else f"{', '.join(form.name for form in able)} ({promises})"
    )


def _links(forms: tuple[str, ...]) -> str:
    return ", ".join(f"[{name}](#form-{name})" for name in forms) or UNKNOWN


def _scheme(scheme: Scheme) -> Iterator[str]:
    if not scheme.contradictions and not scheme.apart:
        return
    yield f"### {scheme.title}\n"
    yield from (f"- {text}" for text in scheme.contradictions)
    if scheme.apart:
        yield f"- {scheme.apart}"
    yield ""


def _form(form: Form) -> Iterator[str]:
    yield f"### Form `{form.name}`\n"
    yield f"{_sentence(form.summary)} {_sentence(form.notes) if form.notes else ''}".rstrip() + "\n"
    kind = "the catalogue's own structure" if form.kind == "literal" else "as files hold it"
    encode = form.encoding if form.encode is not None else "no"
    yield f"- **Kind**: {kind}, of {', '.join(f'`{name}`' for name in schemes_of(form))}"
    yield f"- **Values**: `[{', '.join(form.axes)}]`; {form.arithmetic}"
    yield f"- **Encode**: {encode}"
    if form.kind == "literal":
        yield f"- **Encoder of ONNX operators**: {_portable(form)}"
    yield f"- **Oracle**: {form.oracle}"
    figures = list(dict.fromkeys(rounded(bits_per_weight(form, one)) for one in examples_of(form)))
    yield f"- **Bits per weight**: {' or '.join(figures)}"
    yield ""
    yield "| part | type | shape | what it is |"
    yield "|---|---|---|---|"
    for part in form.parts:
        meaning = f"{part.meaning}; optional" if part.optional else part.meaning
        yield f"| `{part.name}` | {' or '.join(part.dtypes)} | `{part.axes}` | {_cell(meaning)} |"
    yield ""
    if form.parameters:
        yield "| parameter | kind | default | what it says |"
        yield "|---|---|---|---|"
        for parameter in form.parameters:
            meaning = parameter.meaning + _choices(parameter)
            yield f"| `{parameter.name}` | {parameter.kind} | {_default(parameter)} | {_cell(meaning)} |"
        yield ""


def _portable(form: Form) -> str:
    """`yes`, or why a literal form has no encoder of standard operators."""
    from ninfer_core.schemes.literal import SPECS
    from ninfer_core.schemes.profiles.functions import encoder_of
    from ninfer_core.schemes.profiles.translate import translate

    example = examples_of(form)[0]
    quantization = SPECS[form.name].quantization(example.shape, complete(form, example.params))
    try:
        encoder_of(quantization, translate(quantization, example.shape), example.shape)
    except CannotEncode as fault:
        return f"no, {fault}"
    return "yes"


def _choices(parameter: Parameter) -> str:
    return f" ({', '.join(map(str, parameter.choices))})" if parameter.choices else ""


def _default(parameter: Parameter) -> str:
    if parameter.default is REQUIRED:
        return "needed"
    value = parameter.default
    if isinstance(value, bool):
        return "true" if value else "false"
    return UNKNOWN if value in (None, (), "") else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
