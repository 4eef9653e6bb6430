"""Steps in JAX under budgets of 70 and 60 %: XLA's total of lowtide.jax, beside jax.checkpoint by hand and its policies.

    build/venv/bin/python bench/jax/run.py OUT.csv [model...]

Writes a row for each model and way, and a table of them beside the CSV (.table).  Peers: jax.checkpoint around each block, and
around the whole loss with a policy.  Seconds of lowtide.jax are those of tracing, planning and all executables, jax.jit's among them;
those of the others of tracing and compiling.
"""

import csv
import sys
import time
from pathlib import Path

import jax
import lowtide.jax

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python"))
import jax_steps

SIZES = {"perceptron": {"batch": 2048, "width": 256, "depth": 8}, "transformer": {"depth": 3, "batch": 4, "tokens": 128, "d": 128},
         "unet": {"batch": 8, "size": 32, "channels": 16, "depth": 3}, "lstm": {"steps": 64, "batch": 32, "d": 128},
         "experts": {"tokens": 1024, "d": 64}, "scanned_transformer": {"depth": 6, "batch": 8, "tokens": 64, "d": 64},
         "equinox_adamw": {"batch": 2048, "width": 64}}
POLICIES = {"policy nothing_saveable": jax.checkpoint_policies.nothing_saveable,
            "policy dots_saveable": jax.checkpoint_policies.dots_saveable}
COLUMNS = ["model", "way", "total", "share", "compile_seconds", "compile_ratio", "executables", "overhead", "same_bits"]


def total_of(step, args):
    """XLA's total and the seconds of its compilation."""
    jax.clear_caches()
    began = time.perf_counter()
    account = jax.jit(step).lower(*args).compile().memory_analysis()
    seconds = time.perf_counter() - began
    return (account.temp_size_in_bytes + account.argument_size_in_bytes + account.output_size_in_bytes
            - account.alias_size_in_bytes), seconds


def ours(step, args, budget):
    """The row of lowtide.jax, or of its refusal."""
    jax.clear_caches()
    began = time.perf_counter()
    try:
        planned = lowtide.jax.optimize(step, *args, budget=budget)
    except lowtide.jax.BudgetError as error:
        return {"way": f"lowtide {budget}, refused", "total": error.smallest}, time.perf_counter() - began
    seconds = time.perf_counter() - began
    jax.block_until_ready(planned(*args))
    report = planned.report
    return {"way": f"lowtide {budget}", "total": report.total, "executables": len(report.totals), "overhead": f"{report.overhead:.4f}",
            "same_bits": report.bits.startswith("bit-identical")}, seconds


def by_block(name, size):
    """The step with jax.checkpoint around each block; None for a model without blocks."""
    if name == "scanned_transformer":
        return jax_steps.scanned_transformer(**size, marked=True)
    if name != "transformer":
        return None
    real = jax_steps.layer

    def marked(x, p, key):
        return jax.checkpoint(real)(x, p, key)

    step, args = jax_steps.transformer(**size)

    def with_marks(*given):  # the layer is looked up while JAX traces
        jax_steps.layer = marked
        try:
            return step(*given)
        finally:
            jax_steps.layer = real

    return with_marks, args


def with_policy(name, size, policy):
    """The step whose whole loss is a jax.checkpoint."""
    real = jax_steps.sgd
    jax_steps.sgd = lambda loss: real(jax.checkpoint(loss, policy=policy))
    try:
        return getattr(jax_steps, name)(**size)
    finally:
        jax_steps.sgd = real


def rows_of(name):
    size = SIZES[name]
    step, args = getattr(jax_steps, name)(**size)
    plain, compiling = total_of(step, args)
    yield {"model": name, "way": "jax.jit", "total": plain, "share": "1.000", "compile_seconds": f"{compiling:.1f}", "compile_ratio": "1.0"}
    for budget in ("70%", "60%"):
        row, seconds = ours(step, args, budget)
        yield row | {"model": name, "share": f"{row['total'] / plain:.3f}", "compile_seconds": f"{seconds:.1f}",
                     "compile_ratio": f"{seconds / compiling:.1f}"}
    marked = by_block(name, size)
    peers = {"checkpoint by block": marked} if marked else {}
    if name not in ("transformer", "equinox_adamw"):  # whose losses return more than a number, or are no function of their own
        peers |= {way: with_policy(name, size, policy) for way, policy in POLICIES.items()}
    for way, (peer, its_args) in peers.items():
        total, seconds = total_of(peer, its_args)
        yield {"model": name, "way": way, "total": total, "share": f"{total / plain:.3f}", "compile_seconds": f"{seconds:.1f}",
               "compile_ratio": f"{seconds / compiling:.1f}"}


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(SIZES)
    rows = []
    for name in names:
        for row in rows_of(name):
            rows.append({column: row.get(column, "") for column in COLUMNS})
            print(rows[-1], flush=True)
        with out.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |",
                 *("| " + " | ".join(str(row[column]) for column in COLUMNS) + " |" for row in rows)]
        out.with_suffix(".table").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
