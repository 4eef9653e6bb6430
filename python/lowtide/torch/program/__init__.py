"""Joint FX graph -> program: the Lowtide graph, and what makes code of each of its ops."""
