"""The catalogue of foreign quantizations: typed structures over byte buffers, and what their numbers mean.

A registry of its own. No name, decoder or encoder of it is a format, a layout, an alias or a recipe's way to encode,
and its NVFP4 and FP8 are other things than the registry's.
"""
