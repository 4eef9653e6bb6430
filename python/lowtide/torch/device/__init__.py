"""The machine that a step runs on: its memory, its link to the host, its rates, and its identity."""
