"""Small training steps in JAX for the suites of lowtide.jax: each function returns a step and its arguments."""

import equinox
import jax
import jax.numpy as jnp
import optax

KEY = jax.random.PRNGKey(0)


def normal(number, *shape, scale=0.1):
    return scale * jax.random.normal(jax.random.fold_in(KEY, number), shape)


def sgd(loss):
    """A step of plain gradient descent, whose result is the parameters and the loss."""
    def step(params, *batch):
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step


def perceptron(batch=256, width=64, depth=6):
    weights = [normal(i, width, width) for i in range(depth)]

    def loss(weights, x, y):
        for w in weights:
            x = jax.nn.gelu(x @ w)
        return jnp.mean((x - y) ** 2)

    x = normal(99, batch, width)
    return sgd(loss), (weights, x, 0.5 * x)


def attention(x, p, heads=2):
    b, s, d = x.shape
    q, k, v = (t.reshape(b, s, heads, d // heads).transpose(0, 2, 1, 3) for t in jnp.split(x @ p["qkv"], 3, -1))
    scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (d // heads) ** -0.5, -1)
    return scores, v


def layer(x, p, key, heads=2):
    """One transformer layer with dropout on its scores."""
    b, s, d = x.shape
    scores, v = attention(x, p, heads)
    kept = jax.random.bernoulli(key, 0.9, scores.shape)
    scores = jnp.where(kept, scores / 0.9, 0)
    x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(b, s, d) @ p["o"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"], kept.sum()


def layers_of(depth, d):
    return [{"qkv": normal(4 * i, d, 3 * d), "o": normal(4 * i + 1, d, d), "up": normal(4 * i + 2, d, 4 * d),
             "down": normal(4 * i + 3, 4 * d, d)} for i in range(depth)]


def transformer(depth=2, batch=4, tokens=32, d=32):
    """Beside the loss, how many scores dropout has kept."""
    def loss(params, x, key):
        kept = 0
        for i, p in enumerate(params):
            x, some = layer(x, p, jax.random.fold_in(key, i))
            kept = kept + some
        return jnp.mean(x ** 2), kept

    def step(params, x, key):
        (value, kept), gradients = jax.value_and_grad(loss, has_aux=True)(params, x, key)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value, kept

    return step, (layers_of(depth, d), normal(50, batch, tokens, d), jax.random.key(7))


def scanned_perceptron(marked, batch=128, width=32, depth=8):
    """A scan over its layers, each perhaps marked by jax.checkpoint."""
    def loss(weights, x):
        def body(x, w):
            return jax.nn.gelu(x @ w), None

        return jnp.mean(jax.lax.scan(jax.checkpoint(body) if marked else body, x, weights)[0] ** 2)

    return sgd(loss), (normal(1, depth, width, width), normal(2, batch, width))


def scanned_transformer(depth=4, batch=4, tokens=32, d=32, marked=False):
    """A scan over its layers."""
    def loss(params, x, key):
        def body(x, inputs):
            p, key = inputs
            x, kept = layer(x, p, key)
            return x, kept

        body = jax.checkpoint(body) if marked else body
        x, kept = jax.lax.scan(body, x, (params, jax.random.split(key, depth)))
        return jnp.mean(x ** 2) + 0 * kept.sum()

    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers_of(depth, d))
    return sgd(loss), (params, normal(50, batch, tokens, d), jax.random.key(7))


def lstm(steps=32, batch=16, d=32):
    """A scan over time."""
    def loss(params, inputs):
        def body(carry, x):
            hidden, cell = carry
            i, f, g, o = jnp.split(jnp.concatenate([x, hidden], -1) @ params["w"] + params["b"], 4, -1)
            cell = jax.nn.sigmoid(f + 1) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zeros = jnp.zeros((batch, d))
        return jnp.mean(jax.lax.scan(body, (zeros, zeros), inputs)[1] ** 2)

    return sgd(loss), ({"w": normal(1, 2 * d, 4 * d), "b": jnp.zeros(4 * d)}, normal(2, steps, batch, d))


def unet(batch=4, size=16, channels=8, depth=2):
    """Convolutions, pooling and skips."""
    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def kernel(number, into, out):
        return normal(number, 3, 3, into, out, scale=(2 / (9 * into)) ** 0.5)

    widths = [channels * 2 ** i for i in range(depth + 1)]
    params = {"in": kernel(1, 3, channels), "out": kernel(2, channels, 3),
              "down": [kernel(10 + i, widths[i], widths[i + 1]) for i in range(depth)],
              "up": [kernel(20 + i, widths[i] + widths[i + 1], widths[i]) for i in range(depth)]}

    def loss(params, x, y):
        h, skips = jax.nn.silu(conv(x, params["in"])), []
        for w in params["down"]:
            skips.append(h)
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            h = jax.nn.silu(conv(h, w))
        for w, skip in zip(params["up"][::-1], skips[::-1], strict=True):
            h = jnp.repeat(jnp.repeat(h, 2, 1), 2, 2)
            h = jax.nn.silu(conv(jnp.concatenate([h, skip], -1), w))
        return jnp.mean((conv(h, params["out"]) - y) ** 2)

    x = normal(3, batch, size, size, 3)
    return sgd(loss), (params, x, 0.3 * x)


def experts(tokens=256, d=32, count=4, depth=3):
    """A mixture of experts: each token is weighed over all of them."""
    params = [{"gate": normal(3 * i, d, count), "in": normal(3 * i + 1, count, d, 2 * d), "out": normal(3 * i + 2, count, 2 * d, d)}
              for i in range(depth)]

    def loss(params, x):
        for p in params:
            weights = jax.nn.softmax(x @ p["gate"], -1)
            inside = jax.nn.gelu(jnp.einsum("td,edf->tef", x, p["in"]))
            x = x + jnp.einsum("tef,efd,te->td", inside, p["out"], weights)
        return jnp.mean(x ** 2)

    return sgd(loss), (params, normal(98, tokens, d))


def equinox_adamw(batch=256, width=32, depth=5):
    """A module of Equinox, trained by an optimizer of Optax."""
    model = equinox.nn.MLP(width, width, width, depth, key=KEY)
    arrays, rest = equinox.partition(model, equinox.is_array)
    optimizer = optax.adamw(1e-2)

    def step(arrays, state, x):
        def loss(arrays):
            return jnp.mean((jax.vmap(equinox.combine(arrays, rest))(x) - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(arrays)
        updates, state = optimizer.update(gradients, state, arrays)
        return optax.apply_updates(arrays, updates), state, value

    return step, (arrays, optimizer.init(arrays), normal(5, batch, width))
