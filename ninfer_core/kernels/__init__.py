"""Fast twins of the oracles. Importing this package is cheap; `kernels.cpu` brings in the compiler.

`scalar` holds the integer rules of single words; `values` what goes in and out; `cpu` the functions to call.
"""
