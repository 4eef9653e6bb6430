"""Processor time of compiling a step, with Inductor and with plans over fused kernels, all caches off.

    python bench/torch/compile_time.py [MODEL ...]

Each way has a process of its own, in which all compilers run one after another: user and system time of it and its children count, from
the call to the end of the first step.  The models are those of fused.py.  `distinct` are the clusters that were compiled.  Inductor
precompiles its headers once for a machine, whatever caches are off: that is done before, and counts for no way.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

WAYS = ("Inductor", "fused, no plan", "fused, 50 %")


def one(name, way):
    import fused
    import torch
    from lowtide.torch.clusters import cluster as clusters

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, batch = fused.MODELS[name]()
    fused.step(module, module, batch)
    own = fused.peak(module, module, batch)
    began = spent()
    run = dict(fused.ways(own))[way](module, batch)
    fused.step(module, run, batch)
    print(json.dumps({"seconds": spent() - began, "distinct": sum(c.is_compiled for c in clusters._known.values())}))


def spent():
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def process(*arguments):
    """What a Python process without caches prints last."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                    "LOWTIDE_CACHE": "off"}
        done = subprocess.run([sys.executable, *arguments], env=os.environ | settings, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def measured(name, way):
    return json.loads(process(__file__, "--one", name, way))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(*asked.one)
        sys.exit()
    import fused
    process("-c", "import torch; print(torch.compile(lambda x: x.sin() + 1)(torch.ones(64)).sum())")  # precompiles the headers
    print("| model | way | processor s | / Inductor's | distinct |\n| --- | --- | ---: | ---: | ---: |")
    for model in asked.models or fused.MODELS:
        base = None
        for how in WAYS:
            found = measured(model, how)
            base = base or found["seconds"]
            print(f"| {model} | {how} | {found['seconds']:.1f} | {found['seconds'] / base:.2f} | {found['distinct'] or ''} |", flush=True)
