"""Kernels prove on their device that they equal the oracles: questions, answers, and what is kept as evidence."""
