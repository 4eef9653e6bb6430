"""Programs of graphs that transforms have made: what runs in parts, what puts parts together, a backward in the forward."""
