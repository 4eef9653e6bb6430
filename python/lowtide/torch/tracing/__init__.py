"""A step of a model -> a joint FX graph of forward and backward, with the roles of its nodes."""
