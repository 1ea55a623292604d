"""Typed structures over byte buffers: the type model, sizes, the checker and the view of the leaves."""
