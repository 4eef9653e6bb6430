"""A schedule -> FX graphs of forward and backward, and the code that runs them."""
