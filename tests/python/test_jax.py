"""lowtide.jax: budgets by XLA's own count, the same results, and steps of every form in the place of jax.jit."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("equinox")
pytest.importorskip("optax")
jax = pytest.importorskip("jax")

import jax.numpy as jnp
import jax_steps
import lowtide.jax
import numpy as np
from jax import export

import lowtide

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import ROOT, blocks


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")


def optimize(step, *args, **options):
    return lowtide.jax.optimize(step, *args, **{"time": None, "work": 30_000, **options})


def total_of(step, *args, **options):
    """XLA's total of jax.jit(step), counted here."""
    account = jax.jit(step, **options).lower(*args).compile().memory_analysis()
    return (account.temp_size_in_bytes + account.argument_size_in_bytes + account.output_size_in_bytes
            - account.alias_size_in_bytes)


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), one, other)


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("name", ["perceptron", "unet", "experts", "lstm", "scanned_transformer", "equinox_adamw"])
def test_xla_takes_no_more_than_the_budget(name):
    step, args = getattr(jax_steps, name)()
    planned = optimize(step, *args, budget="75%")
    report, plain = planned.report, total_of(step, *args)
    assert report.own_total == plain
    assert report.total <= report.budget == int(plain * 0.75)
    assert 2 <= len(report.totals) <= 3 and report.totals[-1] == report.total
    close(planned(*args), jax.jit(step)(*args))


def test_dropout_draws_the_same_numbers():
    step, args = jax_steps.transformer()
    planned = optimize(step, *args, budget="70%")
    params, loss, kept = planned(*args)
    expected = jax.jit(step)(*args)
    assert planned.report.total <= planned.report.budget
    assert int(kept) == int(expected[2])
    close((params, loss), expected[:2])


@pytest.mark.parametrize("name", ["perceptron", "lstm"])
def test_op_by_op_holds_what_the_plan_says(name):
    step, args = getattr(jax_steps, name)()
    whole = optimize(step, *args, budget="100%", exact=True)
    planned = optimize(step, *args, budget="70%", exact=True)
    expected = whole(*args)
    equal(planned(*args), expected)
    assert planned.held == planned.report.peak <= planned.report.budget
    assert planned.report.peak < whole.held


def test_loops_save_less():
    step, args = jax_steps.lstm()
    planned = optimize(step, *args, budget="50%")
    assert planned.report.loops and planned.report.overhead > 0
    close(planned(*args), jax.jit(step)(*args))


def test_checkpoint_marks_are_leave():
    marked, args = jax_steps.scanned_perceptron(marked=True)
    plain, _ = jax_steps.scanned_perceptron(marked=False)
    roomy = optimize(marked, *args, budget=2 * total_of(plain, *args))
    assert roomy.report.overhead < 0  # less time than with the marks
    close(roomy(*args), jax.jit(plain)(*args))

    step, (weights, *batch) = jax_steps.perceptron()
    graph = lowtide.jax.capture(step, weights, *batch)

    def loss(weights, x, y):
        for w in weights:
            x = jax.checkpoint(lambda x, w: jax.nn.gelu(x @ w))(x, w)
        return jnp.mean((x - y) ** 2)

    again = lowtide.jax.capture(jax_steps.sgd(loss), weights, *batch)
    products = [sum(op.kind == "aten.mm" for op in g.ops) for g in (graph, again)]
    assert products[0] == products[1]  # a plan decides which of them to repeat


def test_calls_like_jit():
    def step(params, batch, *, scale, rows=None, key):
        x = jax.nn.gelu(batch["x"] @ params["w"]) * scale
        x = x[:rows] + 0 * jax.random.normal(key, x[:rows].shape)
        return {"w": params["w"] * 0.9, "none": None}, (x.sum(), jax.random.split(key)[0])

    args = {"w": jnp.ones((4, 4))}, {"x": np.ones((8, 4), np.float32)}
    words = {"scale": 2.0, "rows": 3, "key": jax.random.key(1)}
    planned = optimize(step, *args, budget="100%", kwargs=words, static_argnames="rows")
    plain = jax.jit(step, static_argnames="rows")
    for rows in (3, 5, None):
        a, b = planned(*args, **words | {"rows": rows}), plain(*args, **words | {"rows": rows})
        assert jax.tree.structure(a) == jax.tree.structure(b)
        equal(a[0], b[0])
        assert a[1][0] == b[1][0] and a[1][1] == b[1][1]
    assert len(planned.reports) == 3
    planned({"w": jnp.ones((4, 2))}, args[1], **words)  # other shapes are planned at their first call
    assert len(planned.reports) == 4 and planned.__name__ == "step"


def test_plans_for_shapes_without_arrays():
    step, args = jax_steps.perceptron()
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), args)
    planned = optimize(step, *shapes, budget="80%")
    planned(*args)
    assert len(planned.reports) == 1


def test_nothing_is_planned_before_the_first_call():
    step, args = jax_steps.perceptron()
    planned = optimize(step, budget="80%")
    with pytest.raises(LookupError, match="has no plan yet"):
        _ = planned.report
    planned(*args)
    assert planned.report.total <= planned.report.budget


@pytest.mark.parametrize("exact", [False, True])
def test_donated_arguments_are_given_up(exact):
    step, (weights, *batch) = jax_steps.perceptron()
    expected = jax.jit(step)(weights, *batch)
    planned = optimize(step, weights, *batch, budget="70%", donate_argnums=0, exact=exact)
    given = [jnp.copy(w) for w in weights]
    close(planned(given, *batch), expected)
    assert all(w.is_deleted() for w in given)
    assert planned.report.own_total < total_of(step, weights, *batch)


def test_arguments_may_have_any_attributes():
    """Variables of Flax have all attributes of their arrays' stand-ins, as this class has that of an ArgInfo."""
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Box:
        array: object
        donated = True

    planned = optimize(lambda box: Box(box.array * 2), Box(jnp.ones(4)), budget="100%")
    equal(planned(Box(jnp.ones(4))).array, 2 * jnp.ones(4))


@pytest.mark.parametrize("exact", [False, True])
def test_effects_happen_once(exact):
    step, args = jax_steps.perceptron()
    seen = []

    def loud(weights, x, y):
        weights, loss = step(weights, x, y)
        jax.debug.callback(lambda value: seen.append(float(value)), loss, ordered=True)
        return weights, loss

    planned = optimize(loud, *args, budget="70%", exact=exact)
    for _ in range(2):
        planned(*args)
    jax.effects_barrier()
    assert len(seen) == 2
    assert "effects" in planned.report.bits


def test_selects_tie_where_barriers_do_not_stay(monkeypatch):
    monkeypatch.setattr("lowtide.jax.emission.ties._barriers_stay", lambda: False)
    step, args = jax_steps.perceptron()
    planned = optimize(step, *args, budget="70%")
    assert planned.report.total <= planned.report.budget
    assert planned.report.bits == "results not yet compared with jax.jit's"
    close(planned(*args), jax.jit(step)(*args))
    assert "jax.jit" in planned.report.bits and "first call" in planned.report.bits


def test_copies_to_the_host_run_op_by_op():
    step, args = jax_steps.perceptron()
    planned = optimize(step, *args, budget="60%", exact=True, techniques="offload", link="100GB/s,1ns")
    assert planned.report.offloaded
    equal(planned(*args), optimize(step, *args, budget="100%", exact=True)(*args))
    assert planned.held <= planned.report.budget


def test_prices_can_be_measured():
    step, args = jax_steps.perceptron(batch=16, width=8, depth=2)
    assert all(op.time > 0 for op in lowtide.jax.capture(step, *args, costs="measured").ops)


def test_a_captured_graph_says_what_it_needs():
    step, (weights, *batch) = jax_steps.perceptron()
    graph = lowtide.jax.capture(step, weights, *batch, donate_argnums=0)
    inputs = {t.name: t for t in graph.tensors if t.role == "input"}
    assert inputs["args[0][0]"].releasable and not inputs["args[1]"].releasable
    assert {op.phase for op in graph.ops} >= {"forward", "backward"}
    assert lowtide.priced_on(graph, "h100").duration != graph.duration  # ops say how many operations they are
    assert lowtide.plan(graph, "60%", work=30_000, time=None).plan is not None


def test_groups_have_the_kinds_of_the_table():
    step, args = jax_steps.transformer()
    graph = lowtide.jax.capture(step, *args)
    kinds = {op.kind for op in graph.ops}
    assert kinds >= {"aten.mm", "aten.bmm", "aten.add", "aten.mul", "aten.amax", "aten.sum", "aten.clone", "lowtide.pointwise"}
    content = graph.to_dict()
    for op in content["ops"]:
        if op["kind"] in ("aten.mm", "aten.bmm"):
            left, right, made = (entry["shape"] for entry in (*op["operands"], *op["results"]))
            assert op["attributes"]["flops"] == 2 * np.prod(made) * left[-1]
            assert left[-1] == right[-2] and made == [*left[:-1], right[-1]]
        for key in ("kind", "operands", "results", "arguments"):
            op.pop(key, None)
    without = lowtide.Graph.from_dict(content)
    assert (graph.own_peak, graph.duration) == (without.own_peak, without.duration)
    problems = [lowtide.Problem(g, graph.own_peak * 7 // 10) for g in (graph, without)]
    plan = lowtide.plan(graph, graph.own_peak * 7 // 10, work=30_000, threads=1).plan
    assert lowtide.verify(problems[0], plan).peak == lowtide.verify(problems[1], plan).peak


def test_kinds_need_the_same_meaning():
    def kinds(step, *shapes):
        graph = lowtide.jax.capture(step, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))
        return [op.kind for op in graph.ops]

    assert kinds(lambda x, w: x @ w.T, (3, 4, 8), (5, 8)) == ["aten.clone", "aten.mm"]
    assert kinds(lambda q, k: jnp.einsum("bthd,bshd->bhts", q, k), (2, 3, 4, 5), (2, 3, 4, 5)) == ["jax.dot_general"]  # heads lie apart
    assert kinds(lambda x: x.sum(1), (3, 4)) == ["aten.sum"]
    assert kinds(lambda x: jnp.sum(x * x, 1), (3, 4)) == ["jax.reduce_sum"]  # two operators in one
    assert kinds(lambda x: 1.0 - x, (3, 4)) == ["lowtide.pointwise"]
    assert kinds(jax.nn.softmax, (3, 4)) == ["aten.amax", "lowtide.pointwise", "aten.sum", "aten.div"]
    assert kinds(jax.nn.standardize, (3, 4)) == ["aten.sum", "aten.div", "jax.reduce_sum", "lowtide.pointwise"]
    assert kinds(lambda x: jnp.exp(x.reshape(12) * 2).reshape(3, 4) + 1, (3, 4)) == ["lowtide.pointwise"]
    assert kinds(lambda x, y: jnp.exp(x + y[:, None]).T, (3, 4), (3,)) == ["jax.transpose"]
    assert kinds(lambda x: jnp.arange(4.0) * x + 1, (3, 4)) == ["jax.add"]  # numbers by their places
    assert kinds(lambda x, y: (x + y).reshape(4, 3) * 2, (3, 4), (3, 4)) == ["jax.mul"]  # a view of what is computed of several
    assert kinds(lambda x, b: x + b, (3, 4), (4,)) == ["aten.add"]


def test_time_for_a_plan_follows_from_compiling():
    settings = lowtide.jax.settings.Settings("60%")
    short, shorter = settings.within_seconds(0.5), settings.within_seconds(0.2)
    assert short.time == 0.5 and shorter.time == 0.2 and settings.within_seconds(100).time == settings.time
    assert short.plan_key() == shorter.plan_key()  # so that a plan is found again in the cache
    for given in ({"time": 5.0}, {"time": None, "work": 30_000}, {"work": 30_000}):
        asked = lowtide.jax.settings.Settings("60%", **given)
        assert asked.within_seconds(0.2) is asked


def test_planned_peaks_estimate_the_total():
    """Outputs have their buffers from the start on; operands that do not lie as matrices are copied."""
    step, (weights, *batch) = jax_steps.perceptron()
    found = [lowtide.jax.explain(step, weights, *batch, time=0.1, points=2, show=False, donate_argnums=given) for given in (None, 0)]
    assert found[0].curve.own_peak - found[1].curve.own_peak == sum(w.nbytes for w in weights)

    def lies(subscripts, *shapes):
        graph = lowtide.jax.capture(lambda *args: jnp.einsum(subscripts, *args), *(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))
        return [op.workspace for op in graph.ops if "dot" in op.name]

    assert lies("td,df->tf", (3, 4), (4, 5)) == lies("bij,bjk->bik", (2, 3, 4), (2, 4, 5)) == [0]
    assert lies("tbi,bij->tbj", (3, 2, 4), (2, 4, 5)) == [4 * 24]  # the batch is not first


def test_explain_shows_the_curve(capsys, tmp_path):
    step, args = jax_steps.perceptron()
    found = lowtide.jax.explain(step, *args, time=0.3, points=4)
    assert str(found) in capsys.readouterr().out
    assert "smallest" in str(found) and "lowtide.jax.Explanation" in repr(found)
    found.save_html(tmp_path / "curve.html")
    assert "<html" in (tmp_path / "curve.html").read_text()


def test_what_cannot_be_is_said():
    step, args = jax_steps.perceptron()
    with pytest.raises(lowtide.jax.BudgetError, match="smallest total reached is") as refused:
        optimize(step, *args, budget="1%")
    assert refused.value.smallest >= refused.value.floor > 0

    def branches(x):
        return x if x > 0 else -x

    with pytest.raises(lowtide.jax.CaptureError, match="^branches cannot be traced: TracerBoolConversionError"):
        optimize(branches, 1.0, budget="50%")
    with pytest.raises(lowtide.jax.CaptureError, match="outside of jit"):
        jax.jit(optimize(step, *args, budget="100%"))(*args)
    with pytest.raises(lowtide.jax.CaptureError, match="static_argnums"):
        optimize(jax.jit(lambda x, n: x * n, static_argnums=1), jnp.ones(3), 2, budget="100%")
    with pytest.raises(ValueError, match="give the function inside"):
        optimize(jax.jit(step), *args, budget="100%", donate_argnums=0)
    with pytest.raises(ValueError, match="donate_argnums: there is no argument 3"):
        optimize(lambda a, b: a + b, *args[1:], budget="100%", donate_argnums=3)
    with pytest.raises(TypeError, match="donate_argnums"):
        optimize(step, *args, budget="100%", donate_argnums="weights")
    with pytest.raises(ValueError, match="no code for JAX can be made of split"):
        optimize(step, *args, budget="50%", techniques="split")
    with pytest.raises(ValueError, match="needs exact=True"):
        optimize(step, *args, budget="50%", techniques="offload")
    with pytest.raises(ValueError, match="unknown costs"):
        optimize(step, *args, budget="50%", costs="abacus")
    with pytest.raises(TypeError, match="optimize has no option 'tim'; it has allocator, costs"):
        optimize(step, *args, budget="50%", tim=3)
    with pytest.raises(lowtide.jax.CaptureError, match="is the str 'mean', and no array: name it in static_argnums"):
        optimize(lambda x, how: x, jnp.ones(3), "mean", budget="50%")
    with pytest.raises(lowtide.jax.CaptureError, match="has the open dimension b: plan for shapes that are known"):
        optimize(lambda x: x, jax.ShapeDtypeStruct(export.symbolic_shape("b"), jnp.float32), budget="50%")
    with pytest.raises(TypeError, match="step must be"):
        optimize(3, budget="50%")


def test_arguments_on_several_devices_are_refused():
    program = ("import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n"
               "import jax, jax.numpy as jnp, lowtide.jax\n"
               "mesh = jax.sharding.Mesh(jax.devices(), 'd')\n"
               "x = jax.device_put(jnp.ones(8), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('d')))\n"
               "try: lowtide.jax.optimize(lambda x: x * 2, x, budget='50%')\n"
               "except lowtide.jax.CaptureError as error: print(error)\n"
               "one = jax.device_put(jnp.ones(8), jax.devices()[1])\n"
               "print(lowtide.jax.optimize(lambda x: x * 2, one, budget='100%')(one).device.id)\n")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "lie on 2 devices" in said and said.strip().endswith("1")


@pytest.mark.parametrize(("found", "missing"), [("None", "jax"), ("types.ModuleType('jax')", "extend")])
def test_a_missing_or_old_jax_is_named(found, missing):
    program = f"import sys, types; sys.modules['jax'] = {found}\nimport lowtide\ntry: lowtide.jax\nexcept ImportError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "lowtide.jax needs JAX" in said and "pip install 'lowtide[jax]'" in said


def test_the_how_to_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(ROOT / "docs/how-to/train-in-jax.md", "python"):
        exec(compile(block, "docs/how-to/train-in-jax.md", "exec"), names)
    assert names["step"].report.total <= names["step"].report.budget
