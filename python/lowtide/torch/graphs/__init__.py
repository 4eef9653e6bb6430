"""The graphs that the tracer makes of a model: compiled, planned together, and watched while they run."""
