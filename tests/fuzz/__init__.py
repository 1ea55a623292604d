"""Coverage-guided fuzzing of what reads struct types: `make fuzz`."""
