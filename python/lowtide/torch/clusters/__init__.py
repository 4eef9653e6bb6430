"""Clusters: ops of a joint graph that Inductor makes one kernel of, each an ordinary op of the plan."""
