"""Slow and plain answers of the operations that no encoder and no decoder owns: what the kernels are held to."""
