"""PyTorch names that are private or differ between versions.  No other package of Lowtide uses them.

Each file has one of PyTorch's parts, under names of Lowtide's own.  A block for some versions alone asks `before` or `since`
(versions.py), so that a test finds the blocks that no supported version needs any more.
"""
