"""Parts of `hiremate` that are objects of the caller: asked, mixed with ours, refused."""

import re
import time
import traceback

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

from package_support import CHAIN, ROOT

WORK = 300_000

# Two layers, and the loss between their halves. Everything by hand.
STEP = {
    "format": "lowtide-graph", "version": 1, "name": "step",
    "tensors": [{"name": name, "bytes": size} for name, size in
                (("x", 4), ("h1", 10), ("h2", 20), ("h3", 6), ("l", 1), ("g3", 6), ("g2", 20), ("g1", 10), ("g0", 4))],
    "ops": [
        {"name": "F1", "time": 1, "inputs": [0], "outputs": [1]},
        {"name": "F2", "time": 3, "inputs": [1], "outputs": [2]},
        {"name": "F3", "time": 3, "inputs": [2], "outputs": [3]},
        {"name": "L", "time": 1, "workspace": 100, "inputs": [3], "outputs": [4]},
        {"name": "BL", "phase": "backward", "time": 1, "inputs": [3, 4], "outputs": [5]},
        {"name": "B3", "phase": "backward", "time": 3, "inputs": [2, 5], "outputs": [6]},
        {"name": "B2", "phase": "backward", "time": 2, "inputs": [1, 6], "outputs": [7]},
        {"name": "B1", "phase": "backward", "time": 1, "inputs": [0, 7], "outputs": [8]},
    ],
    "outputs": [8],
}
BODY = {"ops": [3, 4], "blocks": [{"name": "body", "ops": [0, 1, 2, 5, 6, 7]}]}


@pytest.fixture(scope="module")
def step():
    return lowtide.Graph.from_dict(STEP)


@pytest.fixture(scope="module")
def network():
    return lowtide.generate("transformer", 300)


class Cuts:
    def __init__(self, says):
        self.says, self.asked = says, []

    def partition(self, graph):
        self.asked.append(graph)
        return self.says(graph) if callable(self.says) else self.says


class Solves:
    def __init__(self, says):
        self.says, self.asked = says, []

    def options(self, block, budgets):
        self.asked.append((block, budgets))
        return self.says(block)


def plan(graph, budget="60%", threads=1, **options):
    options = {"polish": False, **options}
    outcome = lowtide.plan(graph, budget, solver="hiremate", options=options, work=WORK, threads=threads)
    if outcome.plan is not None:
        assert lowtide.verify(graph, outcome.plan, budget=budget).duration == outcome.duration
    return outcome


def solved(step, says, **options):
    """The small step, whose one block is solved by what `says`."""
    return plan(step, 135, partition=Cuts(BODY), block=Solves(says), **options)


def ends(block):
    return [option for option in (block.save_all(), block.recompute_all()) if option is not None]


def tree_ops(tree):
    return [*tree["ops"], *(op for block in tree["blocks"] for op in tree_ops(block))]


def test_the_page_runs():
    text = (ROOT / "docs/how-to/replace-a-part-of-hiremate.md").read_text().replace("time=5", f"work={WORK}")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
        outcome = names["outcome"]
        assert outcome.plan is not None and outcome.overhead > 0
        assert lowtide.verify(names["graph"], outcome.plan, budget="60%").peak == outcome.peak


def test_our_partitions_are_plain_data(network):
    tree = lowtide.partition(network)
    assert tree == lowtide.partition(network, with_="h_partition", options={"top_size": 30})
    assert sorted(tree_ops(tree)) == list(range(network.num_ops)) and len(tree["blocks"]) > 1
    assert set(tree) == {"name", "ops", "blocks"} and tree["name"] == ""
    assert lowtide.partition(network, options={"top_size": 60}) != tree
    for name in ("chain", "repeat", "origin", "multilevel"):
        assert sorted(tree_ops(lowtide.partition(network, with_=name))) == list(range(network.num_ops))
    with pytest.raises(lowtide.Error, match='with_ "halves": is no partitioner.*h_partition, chain'):
        lowtide.partition(network, with_="halves")
    with pytest.raises(lowtide.Error, match="option size: .*top_size"):
        lowtide.partition(network, options={"size": 3})


def test_our_tree_said_by_a_guest_plans_as_ours(network):
    ours, mine = plan(network), Cuts(lowtide.partition)
    theirs = plan(network, partition=mine)
    assert theirs.duration == ours.duration and theirs.plan is not None
    assert mine.asked[0] == network or mine.asked[0].hash == network.hash
    both = plan(network, partition=["chain", mine])
    assert both.plan is not None and len(mine.asked) == 2


def test_a_nest_is_read_however_deep(step):
    tree = {"ops": (op for op in (3, 4)), "blocks": ()}
    inner = BODY["blocks"][0]
    for _ in range(5000):
        inner = {"blocks": [inner]}
    tree["blocks"] = (inner,)
    assert plan(step, 135, partition=Cuts(tree), block="search").duration == 16


def test_a_tree_may_be_made_while_it_is_read(step):
    def blocks(ops):
        return ({"ops": (op,), "blocks": iter(())} for op in ops)

    tree = {"ops": range(3, 5), "blocks": ({"blocks": blocks(pair)} for pair in ((0, 7), (1, 6), (2, 5)))}
    mine = Solves(ends)
    assert plan(step, 135, partition=Cuts(tree), block=mine).duration == 16 and len(mine.asked) == 6


def test_the_arguments_of_a_block_solver(step):
    seen = {}

    def look(block):
        graph = block.graph
        names = {op.name: op.index for op in graph.ops}
        seen.update(name=graph.name, rest=graph.op(block.rest).name, ops=[graph.op(op).name for op in graph.order],
                    forward={op.name for op in graph.ops if op.index != block.rest and block.is_forward(op.index)},
                    text=repr(block), stop=block.should_stop())
        for op in (block.rest, -1, 99):
            with pytest.raises(IndexError):
                block.is_forward(op)
        forward, backward = ([names[name] for name in half] for half in (("F1", "F2", "F3"), ("B3", "F1", "B2", "B1")))
        option = block.price(forward, backward)
        seen.update(option=option, ends=ends(block), needs=[graph.tensor(tensor).name for tensor in option.needs])
        with pytest.raises(lowtide.Error, match='backward: op . "B2" comes before op . "B3"'):
            block.price(forward, [names["B2"]])
        again = lowtide.Option(option.forward, option.backward, saved=option.saved, needs=option.needs)
        assert again.forward_time is None and again.saved == 20
        return [option, again, lowtide.Option(forward=tuple(forward), backward=backward)]

    mine = Solves(look)
    outcome = plan(step, 135, partition=Cuts(BODY), block=mine)
    assert outcome.duration == 16 and outcome.plan.sequence == [0, 1, 2, 3, 4, 5, 0, 6, 7]
    option, (all_, none) = seen.pop("option"), seen.pop("ends")
    assert seen == {"name": 'block 1 "body"', "rest": "rest", "ops": ["F1", "F2", "F3", "rest", "B3", "B2", "B1"],
                    "forward": {"F1", "F2", "F3"}, "text": '<lowtide.Block: block 1 "body", 6 ops>', "stop": False,
                    "needs": ["x"]}
    # F1, F2 and F3 take 1, 3 and 3; h1 and h2 are what the backward reads.
    assert (option.forward_time, option.backward_time, option.saved) == (7, 7, 20)
    assert (all_.forward_time, all_.backward_time, all_.saved) == (7, 6, 30)
    assert (none.forward_time, none.backward_time, none.saved) == (7, 10, 0)
    assert option.forward_peak >= 30 and option.backward_peak >= 40
    assert repr(option) == "<lowtide.Option: 3 ops forward, 4 backward, saves 20>"
    (block, budgets), = mine.asked
    assert len(budgets) == 24 and max(budget.saved for budget in budgets) == 25
    assert all(0 <= budget.saved <= 30 and budget.peak > 0 for budget in budgets)
    assert repr(budgets[0]).startswith("<lowtide.BlockBudget: peak ")
    assert block.graph.num_ops == 7 and repr(block) == "<lowtide.Block: ended>"
    for use in (block.save_all, block.should_stop, lambda: block.rest, lambda: block.price([], [])):
        with pytest.raises(RuntimeError, match="has ended"):
            use()


def test_equal_blocks_are_asked_about_once(network):
    mine = Solves(ends)
    outcome = plan(network, block=mine)
    names = [block.graph.name for block, _ in mine.asked]

    def count(tree):
        return sum(1 + count(block) for block in tree["blocks"])

    assert outcome.plan is not None and 1 < len(names) == len(set(names)) < count(lowtide.partition(network))


def test_guests_beside_names_on_several_threads(network):
    cut = plan(network, block="cut,prices")
    one, two = (plan(network, block=["cut", Solves(ends), Solves(ends), "prices"], top=("prices", "contracted"),
                     threads=threads) for threads in (1, 2))
    assert one.plan.steps == two.plan.steps and one.duration <= cut.duration * 1.02
    top = Solves(lambda block: [lowtide.Option(block.graph.order)])
    plan(network, top=[top, "prices"])
    block, (budget,) = top.asked[0]
    assert block.graph.hash == network.hash and budget.saved is None and budget.peak == network.own_peak * 60 // 100


def test_several_objects_have_names_of_their_own(step):
    save_all = type("save_all", (Solves,), {})
    mine = [save_all(ends), save_all(ends)]
    plan(step, 135, partition=Cuts(BODY), block=["save_all", *mine])
    assert [len(one.asked) for one in mine] == [1, 1]
    with pytest.raises(lowtide.Error, match='option block: "save_all-2" is listed twice'):
        plan(step, 135, partition=Cuts(BODY), block=[mine[0], mine[0]])
    with pytest.raises(lowtide.Error, match='option block: "none" is not one of save_all.*, Solves'):
        plan(step, 135, block=[Solves(ends), "none"])


@pytest.mark.parametrize("options, words", [
    ({"partition": object()}, r"option partition: object is neither a name nor an object .* partition\(graph\)"),
    ({"partition": Solves(ends)}, "option partition: Solves is neither"),
    ({"block": ["cut", 3]}, r"option block: int is neither .* options\(block, budgets\)"),
    ({"block": None}, "option block: None is neither"),
    ({"top": Cuts(BODY)}, "option top: Cuts is neither"),
    ({"block": Solves}, "option block: Solves is a class; give an object"),
    ({"block": []}, 'option block: "" is not one of'),
])
def test_wrong_partitioners_and_block_solvers_are_refused(step, options, words):
    with pytest.raises(lowtide.Error, match=words):
        plan(step, 135, **options)


@pytest.mark.parametrize("tree, words", [
    (None, r"what partition\(\) returned: None where a dict with"),
    ([[0], [1]], r"what partition\(\) returned: list where a dict"),
    ({}, 'op 0 "A" is in no block'),
    ({"ops": [0, 1, 3]}, 'op 2 "X" is in no block'),
    ({"ops": [0, 1, 1, 2, 3]}, 'block 0: op 1 "B" stands in it twice'),
    ({"ops": [0, 1, 2, 3], "blocks": [{"name": "in", "ops": [2]}]}, 'block 1 "in": op 2 "X" is in block 0 too'),
    ({"ops": [0, 1, 2, 3, 4]}, "block 0: ops: 4 is no op; there are 4"),
    ({"ops": [0, 1, 2, -1]}, "block 0: ops: -1 is no op"),
    ({"ops": [0, 1, 2, 2**70]}, "ops: 1180591620717411303424 is no op"),
    ({"ops": [0, 1, 2, 3.0]}, "block 0: ops: float where the index of an op should be"),
    ({"ops": "0123"}, "block 0: ops: str where a list of indices should be"),
    ({"ops": [0, 1, 2, 3], "blocks": {"ops": []}}, "block 0: blocks: dict where a list of dicts should be"),
    ({"ops": [0, 1, 2], "blocks": [[3]]}, "block 1: list where a dict"),
    ({"ops": [0, 1, 2, 3], "blocks": [{"name": "void"}]}, 'block 1: has no ops'),
    ({"ops": [0, 1, 2], "blocks": [{"op": [3]}]}, '"op" is no key of a block; there are: name, ops, blocks'),
    ({"ops": [0, 1, 2], "blocks": [{"name": 3, "ops": [3]}]}, "block 1: its name is no str"),
    ({"ops": [1, 2], "blocks": [{"name": "odd", "ops": [0, 3]}]},
     'block 1 "odd": the block is not convex: .* op 0 "A" -> op 1 "B" -> op 3 "C"'),
])
def test_trees_that_are_no_partition(tree, words):
    with pytest.raises(lowtide.Error, match=words) as caught:
        plan(lowtide.Graph.from_dict(CHAIN), 20, partition=Cuts(tree))
    assert str(caught.value).startswith('partitioner "Cuts": ')


def test_a_block_inside_itself(step):
    tree = {"ops": []}
    tree["blocks"] = [tree]
    with pytest.raises(lowtide.Error, match="the same dict stands in the tree twice"):
        plan(step, 135, partition=Cuts(tree))


def changed(block, **claims):
    option = block.save_all()
    return [option, lowtide.Option(option.forward, option.backward, **claims)]


@pytest.mark.parametrize("says, words", [
    (lambda block: None, r"what options\(\) returned: None where a list of Option should be"),
    (lambda block: block.save_all(), r"what options\(\) returned: Option where a list"),
    (lambda block: [], r"options\(\) returned no option"),
    (lambda block: [block.save_all(), [0, 1]], "option 1: list where a lowtide.Option should be"),
    (lambda block: changed(block, saved=29), "option 1: it says that saved is 29, and it is 30"),
    (lambda block: changed(block, forward_time=8), "option 1: it says that forward_time is 8, and it is 7"),
    (lambda block: changed(block, backward_peak=0), "option 1: it says that backward_peak is 0, and it is"),
    (lambda block: changed(block, needs=[]), r"option 1: it says that needs is \[\], and it is \[.\]"),
    (lambda block: [lowtide.Option(block.graph.order)], "forward: op 6 is the rest of the network"),
    (lambda block: [lowtide.Option([0, 7])], "forward: 7 is no op; there are 6"),
    (lambda block: [lowtide.Option([-1])], "forward: -1 is no op"),
    (lambda block: [lowtide.Option(block.save_all().forward)], 'option 0: backward: op . "B." is missing'),
    (lambda block: [lowtide.Option(block.save_all().backward)], 'forward: op . "B3" is an op of the backward half'),
    (lambda block: [lowtide.Option(block.save_all().forward[1:])], 'forward: op . "F2" comes before op . "F1"'),
])
def test_options_that_do_not_hold(step, says, words):
    with pytest.raises(lowtide.Error, match=words) as caught:
        solved(step, says)
    assert str(caught.value).startswith('block solver "Solves", block 1 "body": ')


class Own(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_reaches_the_caller_as_it_is(network, threads):
    raised = Own("mine")

    def fails(_):
        raise raised

    def half(block):
        yield block.save_all()
        raise raised

    for options in ({"partition": Cuts(fails)}, {"block": Solves(fails)}, {"block": ["cut", Solves(half)]},
                    {"top": Solves(fails)}):
        with pytest.raises(Own) as caught:
            plan(network, threads=threads, **options)
        assert caught.value is raised
        assert traceback.extract_tb(raised.__traceback__)[-1].name in ("fails", "half")
        raised.__traceback__ = None


def test_a_plan_is_told_before_a_block_solver_raises(network):
    heard = []

    def fails(block):
        time.sleep(0.1)
        raise Own

    with pytest.raises(Own):
        lowtide.plan(network, "60%", solver="hiremate", options={"block": Solves(fails)}, work=WORK, threads=1,
                     progress=heard.append)
    assert heard and heard[-1].duration is not None


def test_limits_of_work_are_seen_in_a_block(network):
    def counts(block):
        while not block.should_stop(work=1000):
            pass
        return []

    assert plan(network, block=Solves(counts)).stopped_by in ("work limit", "gave up", "finished")


def test_curves_and_fits_ask_guests_too(network):
    mine = Solves(ends)
    options = {"block": mine, "polish": False}
    lowtide.curve(network, "60%", "80%", points=2, solver="hiremate", options=options, work=WORK, threads=1)
    asked = len(mine.asked)
    lowtide.fit(network, "10%", solver="hiremate", options=options, work=WORK, threads=1)
    assert 0 < asked < len(mine.asked)
