"""XLA's own totals beside what Lowtide reads from the same modules: training steps and functions of JAX, compiled for the CPU.

    python bench/hlo.py                     the table, in Markdown
    python bench/hlo.py --small --write DIR small modules and their totals, for tests/io/hlo

A total is what memory_analysis() says: temporaries + arguments + outputs - aliases. Needs the packages jax and optax."""

import argparse
import gzip
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, PartitionSpec

ROOT = Path(__file__).resolve().parent.parent


def random(*shape, scale=0.02):
    return jax.random.normal(jax.random.PRNGKey(len(shape)), shape) * scale


def mlp(size):
    width, depth = 64 * size, 8
    weights = [random(width, width) for _ in range(depth)]

    def loss(weights, x, y):
        for w in weights:
            x = jax.nn.gelu(x @ w)
        return jnp.mean((x - y) ** 2)

    return weights, loss, (random(256 * size, width), random(256 * size, width))


def transformer(size):
    batch, positions, width, heads, layers, words = 4, 64 * min(size, 4), 32 * size, 4, 2 + min(size, 4) // 2, 256 * size

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(x, layer):
        q, k, v = (t.reshape(batch, positions, heads, -1).swapaxes(1, 2) for t in jnp.split(norm(x) @ layer["qkv"], 3, -1))
        scores = jnp.where(jnp.tril(jnp.ones((positions, positions), bool)), q @ k.swapaxes(2, 3), -1e9)
        x = x + (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(batch, positions, width) @ layer["out"]
        return x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]

    def loss(parameters, x, y):
        h = parameters["words"][x]
        for layer in parameters["layers"]:
            h = block(h, layer)
        scores = jax.nn.log_softmax(norm(h) @ parameters["words"].T)
        return -jnp.take_along_axis(scores, y[..., None], -1).mean()

    layer = {"qkv": random(width, 3 * width), "out": random(width, width), "up": random(width, 4 * width),
             "down": random(4 * width, width)}
    tokens = jnp.zeros((batch, positions), jnp.int32)
    return {"words": random(words, width), "layers": [layer] * layers}, loss, (tokens, tokens)


def unet(size):
    channels, depth = 4 * size, 2

    def conv(x, w):
        return jax.nn.silu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def loss(weights, x, y):
        h, skips = conv(x, weights["in"]), []
        for w in weights["down"]:
            skips.append(h)
            h = conv(jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), w)
        for w in weights["up"]:
            h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
            h = conv(jnp.concatenate([h, skips.pop()], -1), w)
        return jnp.mean((conv(h, weights["out"]) - y) ** 2)

    widths = [channels << i for i in range(depth + 1)]
    weights = {"in": random(3, 3, 3, channels), "out": random(3, 3, channels, 3),
               "down": [random(3, 3, a, b) for a, b in zip(widths, widths[1:])],
               "up": [random(3, 3, a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1])]}
    return weights, loss, (random(4, 16 * size, 16 * size, 3), random(4, 16 * size, 16 * size, 3))


def recurrent(size):
    steps, batch, width = 16, 16, 32 * size

    def loss(weights, x, y):
        def step(h, at):
            h = jnp.tanh(h @ weights[0] + at @ weights[1])
            return h, h

        return jnp.mean((jax.lax.scan(step, jnp.zeros((batch, width)), x)[1] - y) ** 2)

    return [random(width, width), random(width, width)], loss, (random(steps, batch, width), random(steps, batch, width))


def stacked(size):
    width = 64 * size

    def loss(weights, x, y):
        h, _ = jax.lax.scan(lambda h, w: (jax.nn.gelu(h @ w) + h, None), x, weights)
        return jnp.mean((h - y) ** 2)

    return random(6, width, width), loss, (random(64, width), random(64, width))


def experts(size):
    width, count = 32 * size, 4

    def loss(weights, x, y):
        gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ weights["route"]), 2)
        mixed = (jax.nn.one_hot(chosen, count) * gates[..., None]).sum(1)
        made = jnp.einsum("ebh,ehd->ebd", jax.nn.gelu(jnp.einsum("bd,edh->ebh", x, weights["up"])), weights["down"])
        return jnp.mean((jnp.einsum("ebd,be->bd", made, mixed) - y) ** 2)

    weights = {"route": random(width, count), "up": random(count, width, 4 * width), "down": random(count, 4 * width, width)}
    return weights, loss, (random(128 * size, width), random(128 * size, width))


def training(model, size, optimizer=None):
    parameters, loss, batch = model(size)

    def plain(parameters, state, x, y):
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, parameters, gradient), state, value

    def adam(parameters, state, x, y):
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        updates, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    return (adam if optimizer else plain), (parameters, optimizer.init(parameters) if optimizer else (), *batch)


def collectives():
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))

    def each(x):
        return jax.lax.psum(x, "d"), jax.lax.all_gather(x, "d"), jax.lax.ppermute(x, "d", [(0, 1), (1, 0)])

    return jax.shard_map(each, mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec("d"), check_vma=False)


def modules(size):
    """Name, function, arguments and donated arguments."""
    adamw = optax.adamw(1e-3)
    for name, model, optimizer, donated in [
            ("mlp-adamw-donated", mlp, adamw, (0, 1)), ("transformer-adamw-donated", transformer, adamw, (0, 1)),
            ("transformer-adamw", transformer, adamw, ()), ("transformer-sgd", transformer, None, ()),
            ("unet-sgd", unet, None, ()), ("unet-adamw-donated", unet, adamw, (0, 1)),
            ("recurrent-adamw-donated", recurrent, adamw, (0, 1)), ("stacked-sgd-donated", stacked, None, (0,)),
            ("experts-adamw-donated", experts, adamw, (0, 1))]:
        yield (name, *training(model, size, optimizer), donated)
    x, key = random(64 * size, 64 * size), jax.random.PRNGKey(0)
    line = x.reshape(-1)
    yield "fft", lambda x: jnp.abs(jnp.fft.ifft2(jnp.fft.fft2(x) * 2)), (x,), ()
    yield "sort", lambda v: (jnp.sort(v), jnp.argsort(-v)), (line,), ()
    yield "random", lambda key: jax.random.normal(key, x.shape), (key,), ()
    yield "loop", lambda n, x: jax.lax.fori_loop(0, n, lambda i, x: jnp.tanh(x @ x), x), (5, x), ()
    yield "nested-loops", lambda x: jax.lax.fori_loop(
        0, 7, lambda i, x: jax.lax.fori_loop(0, 3, lambda j, x: jnp.sin(x @ x) + j, x), x), (x,), (0,)
    yield "branches", lambda i, x: jax.lax.switch(i, [lambda x: x @ x, lambda x: x.T @ x @ x, lambda x: x - 1], x), (1, x), ()
    yield "slices", lambda x, i: jax.lax.dynamic_update_slice(
        x, jax.lax.dynamic_slice(x, (i, 0), (8, 64)) * 2, (i + 8, 0)), (x, 3), (0,)
    yield "scatter", lambda x, i: (x[i], x.at[i].add(1.0)), (x, jnp.arange(64)), ()
    yield "linear-solve", lambda x: jnp.linalg.solve(x, x), (x,), ()
    yield "four-bits", lambda x, w: x @ w.astype(jnp.float32), (x, x.astype(jnp.int4)), ()
    yield "half", lambda x, w: jax.nn.softmax(x @ w), (x.astype(jnp.bfloat16), x.astype(jnp.bfloat16)), ()
    yield "checkpoint", jax.grad(lambda x, w: jnp.sum(jax.checkpoint(lambda x: jnp.tanh(jnp.tanh(x @ w) @ w))(x) @ w)), (x, x), ()
    yield "collectives", collectives(), (x,), ()


def anonymous(text):
    """The module without the listings of source files, which hold paths of the machine."""
    return re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d.*\n)*", "\n", text)


def compiled(function, arguments, donated):
    module = jax.jit(function, donate_argnums=donated).lower(*arguments).compile()
    of = module.memory_analysis()
    total = of.temp_size_in_bytes + of.argument_size_in_bytes + of.output_size_in_bytes - of.alias_size_in_bytes
    return anonymous(module.as_text()), total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="modules of a few megabytes")
    parser.add_argument("--write", metavar="DIR", help="write the modules, and totals.json")
    parser.add_argument("--lowtide", default=str(ROOT / "build/release/lowtide"))
    given = parser.parse_args()
    folder = Path(given.write or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    totals = {}
    mib = 1 / 2**20
    print("| module | ops | XLA's total | peak in place | outputs from the start | XLA's total as predicted | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, function, arguments, donated in modules(2 if given.small else 8):
        text, totals[name] = compiled(function, arguments, donated)
        path = folder / f"{name}.hlo.txt.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))

        def shown(*flags, path=path):
            run = subprocess.run([given.lowtide, "show", path, "--json", *flags], capture_output=True, text=True, check=True)
            return json.loads(run.stdout)

        plain, held = shown()["unplanned"], shown("--outputs-from-start")["unplanned"]
        most = [plain["peak_in_place"] or plain["peak"], held["peak_in_place"] or held["peak"], plain["xla_total"]]
        row = [name, str(shown()["ops"]), f"{totals[name] * mib:.2f}", *(f"{value * mib:.2f}" for value in most),
               f"{100 * (most[2] / totals[name] - 1):+.1f} %"]
        print("| " + " | ".join(row) + " |", flush=True)
    if given.write:
        (folder / "totals.json").write_text(json.dumps(totals, indent=1) + "\n")


if __name__ == "__main__":
    main()
