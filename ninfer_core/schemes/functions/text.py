"""Functions in the text form of ONNX, with their inputs and outputs typed."""

import re
from typing import Final

import onnx
from google.protobuf.message import DecodeError
from onnx import parser, printer

from ninfer_core.errors import NinferError
from ninfer_core.schemes.functions.evaluate import model_of

MAX_DEPTH: Final = 32
# A literal or quoted name, a comment, a bracket. ONNX's parser descends by itself at every bracket and has no bound.
_TOKEN: Final = re.compile(r'"[^"]*"|#[^\n]*|[(\[{<]|[)\]}>]|"')


class TextRefused(NinferError):
    """Text that is no function in ONNX text form."""

    code = "function_text"


def function_to_text(function: onnx.FunctionProto) -> str:
    """The text of a function that types its inputs and its output. Raises: FunctionFailed where it does not.

    ONNX's printer leaves out the elements of constants of less than a byte; all others read back as they are.
    """
    # The printer of functions leaves their types out, the one of graphs writes them.
    graph = printer.to_text(model_of(function).graph)
    imports = ", ".join(f'"{item.domain}" : {item.version}' for item in function.opset_import)
    return f'<\n  domain: "{function.domain}",\n  opset_import: [{imports}]\n>\n{graph}'


def function_from_text(text: str) -> bytes:
    """The serialized function of a text; comments run from # to the end of a line. Raises: TextRefused."""
    if "\\" in text or "\0" in text:
        raise TextRefused("escapes are not read here; give such a function as bytes")
    plain = _without_comments(text)
    try:
        plain.encode()
        function = parser.parse_function(plain)
    # Numbers beyond its types leave the parser as the errors of the C++ library.
    except (parser.ParseError, DecodeError, ValueError, IndexError, RuntimeError) as fault:
        raise TextRefused(" ".join(str(fault).split())[:300]) from fault
    data: bytes = function.SerializeToString(deterministic=True)
    return data


def _without_comments(text: str) -> str:
    """The text for ONNX's parser, once nothing in it is nested deeply. Raises: TextRefused."""
    depth = 0
    kept: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        first = token.group()[0]
        if first in "([{<":
            depth += 1
        elif first in ")]}>":
            depth -= 1
        elif token.group() == '"':
            raise TextRefused("a literal does not end")
        if depth > MAX_DEPTH:
            raise TextRefused(f"more than {MAX_DEPTH} brackets stand inside of each other")
        if first == "#":
            kept.append(text[end : token.start()])
            end = token.end()
    kept.append(text[end:])
    return "".join(kept)
