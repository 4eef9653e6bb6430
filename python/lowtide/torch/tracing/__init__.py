"""A step of a model -> a joint FX graph of forward and backward, and what its nodes are."""
