"""Descriptive profiles of quantizations: into struct types and back, to numbers and from them, and to portable decoders.

`translate.translate`, `describe.describe`, `dispatch.dequantize`, `encode.encode`, `functions.with_functions`.
"""
