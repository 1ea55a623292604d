"""Content on its way in, piece by piece: its row first, then its bytes, and at the end it is content of the project."""
