"""A flat step -> the ops of a graph, with prices, and as the planner's Program."""
