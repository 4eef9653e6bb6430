"""Updates in the backward, as they run: each parameter as soon as its gradient is there, by the user's own optimizer.

The code of a graph's backward calls `graph_updates.apply_update` where its plan has the op `lowtide.update`.  What runs
there is the optimizer's own step, on a copy that knows one parameter and shares its state (updater.py): so the settings
of a group are those of the moment (schedulers change them), and the optimizer is never anything but an ordinary one.

That is the same as a step after the backward only if each parameter gets its gradient from one place of one backward in
a step.  What could break this is looked for before a backward runs (backwards.py), and in what follows it: the gradient
that is not there any more tells so whoever reads it (used_gradient.py).
"""
