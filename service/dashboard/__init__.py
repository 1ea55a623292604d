"""The pages: rendered on the server, plain and quick, readable without scripts."""
