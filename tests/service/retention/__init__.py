"""What is kept, what goes, and what a deleted project leaves."""
