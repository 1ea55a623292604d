"""The block types of GGUF files, and STQ1_0, as forms of schemes."""

from ninfer_core.schemes.ggml.forms import FORMS

__all__ = ["FORMS"]
