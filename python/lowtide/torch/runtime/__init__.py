"""The functions that the generated code of a planned step calls."""
