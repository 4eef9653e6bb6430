"""Lists, tuples, dicts and other containers as trees of their leaves."""

from .versions import needed

with needed("module of trees"):
    from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten

__all__ = ["tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]
