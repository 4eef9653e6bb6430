"""The keys of failures and notices in a result, each with one line that explains it."""

from __future__ import annotations

FAULTS = {
    "budget": "a step exceeded its budget in requested bytes: the plan counts too little; please report it",
    "rounding": "a step exceeded its budget only in the allocator's blocks, which are larger than the requested bytes: set "
                "reserve= in optimize, or PYTORCH_ALLOC_CONF=expandable_segments:True",
    "plan": "the peak differs from the plan's by more than 2 %: budgets hold, but could be used better",
    "bits": "loss, gradients, buffers, parameters or the generator's state differ from eager's; please report it",
    "far": "gradients of split ops differ from eager's by more than another order of sums explains; please report it",
    "repeat": "eager execution itself is not repeatable here, so bit-identity of plans cannot be checked",
    "prediction": "the overhead differs from the plan's by more than 3 percentage points: choose budgets by measured times",
    "prices": "the time of a step without a plan differs from the sum of its measured kernels: predictions have the same error",
    "pinning": "host memory cannot be pinned, so copies block the host: offloading is slow here (ulimit -l, containers)",
    "blocks": "the allocator's block sizes differ from those that plans assume: peaks may exceed the plan by the difference",
    "segments": "the allocator reserved more than the budget, which limits reserved bytes: use footprint='live', or "
                "PYTORCH_ALLOC_CONF=expandable_segments:True; please report it, with results.json",
    "reserved": "the allocator reserves bytes that differ from its model's by more than 2 %: budgets of reserved bytes may not hold; "
                "please report it, with results.json",
    "draws": "recomputed dropout draws other numbers here, so plans would change results; please report it",
    "not recorded": "the step cannot be recorded as a CUDA graph here, and runs as without cuda_graph=True; please report it",
    "tests": "the project's tests fail here: results.json has their output",
    "error": "an exception ended this section: results.json has its traceback",
    "time": "the section reached its time limit; its results so far are above",
    "died": "the section's process ended: worker.log has its last output",
    "left out": "no time was left for the section: raise --seconds, or run it alone with --sections",
}
NOTES = {
    "host": "the host queues kernels no faster than the device runs them, so times are the host's: use larger batches",
    "smallest": "no plan keeps that budget: the plan with the smallest peak was run instead",
    "traced": "PyTorch's tracer changes bits of this model, as the plan's report says; the plan changes no bit of the traced step",
    "not deterministic": "PyTorch has no deterministic kernel for an operator of this model",
    "no tests": "the project's tests, or pytest, are missing: name their folder with --tests",
}
