"""lowtide.jax with models of Flax, of both of its interfaces, and optimizers of Optax.  Skipped where flax is not installed."""

import pytest

pytest.importorskip("optax")
jax = pytest.importorskip("jax")
linen = pytest.importorskip("flax.linen", reason="flax is not installed")
nnx = pytest.importorskip("flax.nnx", reason="flax is not installed")

import jax.numpy as jnp
import lowtide.jax
import numpy as np
import optax

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")


class Block(linen.Module):
    """A transformer layer with dropout on its scores and on what it adds."""

    d: int

    @linen.compact
    def __call__(self, x):
        h = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(num_heads=2, dropout_rate=0.1, deterministic=False)(h, h)
        h = linen.Dense(self.d)(linen.gelu(linen.Dense(4 * self.d)(linen.LayerNorm()(x))))
        return x + linen.Dropout(0.1, deterministic=False)(h)


class Transformer(linen.Module):
    words: int = 64
    d: int = 32

    @linen.compact
    def __call__(self, tokens):
        x = Block(self.d)(linen.Embed(self.words, self.d)(tokens))
        return linen.Dense(self.words)(linen.LayerNorm()(x))


def linen_transformer():
    model, optimizer = Transformer(), optax.adamw(1e-3)
    tokens = jax.random.randint(KEY, (8, 32), 0, 64)
    params = model.init({"params": KEY, "dropout": KEY}, tokens)

    def step(params, state, tokens, key):
        def loss(params):
            logits = model.apply(params, tokens, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, (params, optimizer.init(params), tokens, KEY), (0, 1)


class UNet(nnx.Module):
    def __init__(self, channels, rngs):
        def conv(into, out):
            return nnx.Conv(into, out, (3, 3), rngs=rngs)

        self.first, self.last = conv(3, channels), conv(channels, 3)
        self.down, self.up = conv(channels, 2 * channels), conv(3 * channels, channels)
        self.norm = nnx.BatchNorm(2 * channels, rngs=rngs)

    def __call__(self, x):
        skip = nnx.silu(self.first(x))
        h = nnx.silu(self.norm(self.down(nnx.max_pool(skip, (2, 2), (2, 2)))))
        h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
        return self.last(nnx.silu(self.up(jnp.concatenate([h, skip], -1))))


def nnx_unet():
    """Its arguments are a state whose leaves are objects of Flax, batch statistics among them."""
    model = UNet(8, nnx.Rngs(0))
    definition, state = nnx.split((model, nnx.Optimizer(model, optax.sgd(1e-2, 0.9), wrt=nnx.Param)))
    x = jax.random.normal(KEY, (4, 32, 32, 3))

    def step(state, x):
        model, optimizer = nnx.merge(definition, state)
        value, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x) ** 2))(model)
        optimizer.update(model, gradients)
        return nnx.state((model, optimizer)), value

    return step, (state, x), (0,)


@pytest.mark.parametrize("share", ["70%", "60%"])
@pytest.mark.parametrize("of", [linen_transformer, nnx_unet])
def test_a_step_keeps_its_budget(of, share):
    step, args, donated = of()
    expected = jax.jit(step)(*args)
    planned = lowtide.jax.optimize(step, *args, budget=share, time=None, work=30_000, donate_argnums=donated)
    results = planned(*jax.tree.map(jnp.copy, args))
    report = planned.report
    assert report.total <= report.budget == int(report.own_total * int(share[:-1]) / 100)
    assert jax.tree.structure(results) == jax.tree.structure(expected)
    for a, b in zip(*map(jax.tree.leaves, (results, expected)), strict=True):
        # Adam turns a gradient that is 0 but for rounding, that of a key's bias, into a whole update.
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=3e-3 if of is linen_transformer else 1e-5)
