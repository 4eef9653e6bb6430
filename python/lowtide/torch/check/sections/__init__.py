"""The sections, each a group of measurements.  table.py lists them in order."""
