"""Governed registries: what every entry means, as data whose digest is locked."""
