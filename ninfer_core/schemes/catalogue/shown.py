"""The catalogue as it is shown: which schemes fit a question, and a form with sizes, drawn layout, decoder and encoder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ninfer_core.schemes.catalogue import SCHEMES, SCHEMES_SCHEMA, Scheme
from ninfer_core.schemes.catalogue.examples import Example, example_of
from ninfer_core.schemes.catalogue.facts import box_json, form_json, scheme_json, sizes_json
from ninfer_core.schemes.catalogue.forms import forms_of
from ninfer_core.schemes.drawing import Box, draw, draw_word
from ninfer_core.schemes.form import Form, Params, Shape
from ninfer_core.schemes.run import complete

_SPELLED: Final = (
    ("Proto", ""),
    ("FloatingPoint", "floating_point"),
    ("StructuredBlock", "structured_block"),
    ("(multiple)", ""),
)
_NO_PROFILES: Final = ("or", "none")


@dataclass(frozen=True, slots=True)
class Shown:
    """A form with the shape, the parameters and the optional parts that its sizes are shown for."""

    form: Form
    example: Example

    @classmethod
    def of(
        cls, scheme: Scheme, form: Form, shape: Shape | None = None, given: Mapping[str, Any] | None = None
    ) -> "Shown":
        """What is not given is that of the form's example."""
        usual = example_of(form, scheme.name)
        params = {**usual.params, **(given or {})}
        return cls(form, replace(usual, shape=usual.shape if shape is None else shape, params=params))

    @property
    def params(self) -> Params:
        """All parameters, defaults filled in. Raises: SchemeRefused."""
        return complete(self.form, self.example.params)

    @property
    def dtypes(self) -> dict[str, str]:
        """The parts that are there, each with its type."""
        return self.example.dtypes(self.form)

    @property
    def layout(self) -> Box:
        """The boxes of its struct type. Raises: SchemeRefused."""
        from ninfer_core.schemes.functions.declared import declared_of

        return draw(declared_of(self.form, self.example.shape, self.params, self.dtypes), self.form.name)

    @property
    def word(self) -> Box | None:
        """What one stored word of the codes holds. Raises: SchemeRefused."""
        return draw_word(self.form, self.params)

    def decoder(self) -> str | None:
        """The decoder in ONNX text form, None where standard operators give none. Raises: SchemeRefused."""
        from ninfer_core.schemes.functions.decoders import decoder_of
        from ninfer_core.schemes.functions.text import function_to_text

        function = decoder_of(self.form, self.example.shape, self.params, self.dtypes)
        return None if function is None else function_to_text(function)

    def encoder(self) -> str | None:
        """The encoder in ONNX text form, None where there is none. Raises: SchemeRefused."""
        from ninfer_core.schemes.functions.decoders import encoder_of
        from ninfer_core.schemes.functions.text import function_to_text

        function = encoder_of(self.form, self.example.shape, self.params)
        return None if function is None else function_to_text(function)

    def json(self) -> dict[str, Any]:
        """Everything as JSON values. Raises: SchemeRefused."""
        word = self.word
        return {
            **form_json(self.form),
            "sizes": sizes_json(self.form, self.example),
            "layout": box_json(self.layout),
            "word": None if word is None else box_json(word),
            "decoder": self.decoder(),
            "encoder": self.encoder(),
        }


def shown_json(scheme: Scheme, shown: tuple[Shown, ...]) -> dict[str, Any]:
    """A scheme with some of its forms as one document. Raises: SchemeRefused."""
    return {
        "schema": SCHEMES_SCHEMA,
        "scheme": scheme_json(scheme),
        "forms": [one.json() for one in shown],
    }


def profiles_of(scheme: Scheme) -> tuple[str, ...]:
    """The kinds of profiles that a scheme is made of, as the rules name them."""
    words = scheme.profiles
    for text, name in _SPELLED:
        words = words.replace(text, name)
    return tuple(
        dict.fromkeys(
            word.lower() for word in words.split() if word.isidentifier() and word not in _NO_PROFILES
        )
    )


def profiles() -> tuple[str, ...]:
    """Those of all schemes, by name."""
    return tuple(sorted({word for scheme in SCHEMES for word in profiles_of(scheme)}))


def matching(profile: str | None = None, text: str | None = None) -> list[Scheme]:
    """The schemes of a profile with a text in their names, titles or forms, in the catalogue's order; letters fold."""
    looked = (text or "").lower()
    return [
        scheme
        for scheme in SCHEMES
        if (profile is None or profile.lower() in profiles_of(scheme))
        and any(
            looked in name.lower() for name in (scheme.name, scheme.title, *scheme.aliases, *scheme.forms)
        )
    ]


def forms_shown(scheme: Scheme, shape: Shape | None = None) -> tuple[Shown, ...]:
    """Every form of a scheme, for its example or for a shape."""
    return tuple(Shown.of(scheme, form, shape) for form in forms_of(scheme))
