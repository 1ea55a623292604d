"""Decoders and encoders of struct types as ONNX functions: built, checked, run and written as text."""
