"""A program and a budget -> the schedule of the generated code."""
