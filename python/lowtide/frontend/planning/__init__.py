"""A program and a budget -> the schedule that its code runs."""
