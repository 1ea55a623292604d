"""One module for each change of the tables, named after its date and purpose."""
