"""What goes in and out, as pydantic models; what a client sends may hold no member that is not here."""
