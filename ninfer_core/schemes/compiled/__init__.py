"""Compiled decoders of schemes: each equals the plain one of its form bit for bit, and answers sooner.

Modules here and in `ninfer_core.kernels` alone import the compiler; forms import them inside of functions.
"""
