"""Requests made from the OpenAPI document, by schemathesis, against a real service (`make fuzz-api`)."""
