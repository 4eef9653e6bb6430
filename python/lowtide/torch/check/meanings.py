"""What a result may say is wrong, and what else there may be to know: each key with one line on what it means."""

from __future__ import annotations

FAULTS = {
    "budget": "a step took more than its budget, in bytes that tensors asked for: the plan counts too little; please report it",
    "rounding": "a step took more than its budget only as the allocator counts it, in blocks that are larger than what was "
                "asked for: reserve= in optimize, or PYTORCH_ALLOC_CONF=expandable_segments:True, makes up for it",
    "plan": "the peak is more than 2 % off the plan's: budgets hold, and could be used better",
    "bits": "loss, gradients, buffers, parameters or the generator's state differ from eager's; please report it",
    "far": "gradients in parts are further from eager's than another order of sums explains; please report it",
    "repeat": "eager execution gave other bits the second time, so whether a plan keeps them cannot be said here",
    "prediction": "the extra time is more than 3 points off what the plan says: choose budgets by measured times",
    "prices": "the step without a plan takes another time than the sum of its measured kernels: predictions are off alike",
    "pinning": "memory on the host cannot be pinned, so copies hold up the host: offloading is slow here (ulimit -l, containers)",
    "blocks": "the allocator gives out blocks of other sizes than plans count with: peaks may lie above the plan by as much",
    "reserved": "the allocator reserves other bytes than its model says, by more than 2 %: budgets of reserved bytes may not hold "
                "here; please report it, with results.json",
    "draws": "dropout that is computed again draws other numbers here, so plans would change results; please report it",
    "tests": "tests of the project fail here: results.json has their output",
    "error": "an exception ended this part: results.json has where it came from",
    "time": "it was stopped at its time limit; what it had found is above",
    "died": "its process ended: worker.log has its last words",
    "left out": "no time was left: --seconds gives more, --sections runs it alone",
}
NOTES = {
    "host": "the host queues kernels as slowly as the device runs them, so the host is what is timed: larger batches show more",
    "smallest": "no plan keeps that budget: the smallest that was found was run in its place",
    "traced": "PyTorch's tracer changes bits of this model, as its plan's report says; the plan changes none of the traced step's",
    "not deterministic": "PyTorch has no deterministic kernel for an operator of this model",
    "no tests": "the project's tests, or pytest, are not here: --tests names their folder",
}
