"""The history of the tables, for Alembic. `service/records/schema.py` runs it; nothing here is imported by name."""
