"""A schedule -> a function that JAX traces or runs, and the executable that XLA makes of it."""
