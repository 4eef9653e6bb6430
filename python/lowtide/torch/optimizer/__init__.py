"""Updates in the backward: the user's optimizer updates each parameter as soon as its gradient is computed.

The code of a graph's backward calls `graph_updates.apply_updates` where its plan has the op `lowtide.update`.  That call runs
the optimizer's own step, on a copy that has one parameter and shares its state (updater.py).  So group settings are those of
the moment (schedulers change them), and the optimizer stays an ordinary one.

This equals a step after the backward only if each parameter gets its gradient from one place of one backward in a step.
Violations are detected before a backward runs (backwards.py), and afterwards: reading a gradient that was already used and
freed raises an error (used_gradient.py).
"""
