"""The machine a step runs on: its memory, its link to the host, its rates, and what tells it from others."""
