"""Literal forms: the catalogue's own structures, closed by the rules R1 to R17, each built from its profile."""

from ninfer_core.schemes.literal.forms import FORMS, SPECS

__all__ = ["FORMS", "SPECS"]
