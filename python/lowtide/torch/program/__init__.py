"""Joint FX graph -> program: the Lowtide graph, and a code generator for each of its ops."""
