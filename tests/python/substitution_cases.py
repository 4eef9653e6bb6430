"""For every rule that substitutes, functions on small tensors of odd sizes in which it is found.

CASES: rule -> functions; a function takes a maker of tensors and gives a function of tensors, and these.
"""

import torch

CASES = {}


def case(rule):
    def add(function):
        CASES.setdefault(rule, []).append(function)
        return function
    return add


class Make:
    """Tensors of one number type, small integers in those of integers."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, *shape):
        if self.dtype == torch.bool or not (self.dtype.is_floating_point or self.dtype.is_complex):
            return torch.randint(2 if self.dtype == torch.bool else 4, shape, generator=self.generator).to(self.dtype)
        wide = torch.complex128 if self.dtype.is_complex else torch.float64
        return torch.randn(shape, generator=self.generator, dtype=wide).to(self.dtype)


@case("merge_products")
def queries_keys_values(make):
    def heads(t):
        return t.view(3, 5, 7, 3).transpose(1, 2)

    def function(x, a, b, c):
        q, k, v = (heads(torch.mm(x, w)) for w in (a, b, c))
        return q * k, v + 1
    return function, (make(15, 11), make(11, 21), make(11, 21), make(11, 21))


@case("merge_products")
def linear_layers_of_several_widths(make):
    def function(x, w1, w2, b1, b2):
        return torch.addmm(b1, x, w1.t()).neg(), torch.addmm(b2, x, w2.t())[3:, 1:] + 2
    return function, (make(9, 5), make(7, 5), make(3, 5), make(7), make(3))


@case("merge_products")
def products_whose_rows_and_columns_are_picked(make):
    def function(x, a, b):
        p, q = torch.mm(x.t(), a), torch.mm(x.t(), b)
        return p[1:6:2, 2:5] * 2, q.t()[1] + 1, torch.mm(p, q[:5].t().contiguous())
    return function, (make(3, 9), make(3, 5), make(3, 5))


@case("split_product")
def heads_of_one_layer(make):
    def function(x, w, b):
        q, k, v = (t.view(3, 5, 7, 3).transpose(1, 2) for t in torch.addmm(b, x, w.t()).split(21, 1))
        return q.neg(), k * v
    return function, (make(15, 11), make(63, 11), make(63))


@case("split_product")
def columns_that_nobody_reads(make):
    def function(x, w):
        made = torch.mm(x, w)
        return made[:, 1:3] + made[1:2, 2:4], made[::2, 7].neg()
    return function, (make(9, 5), make(5, 9))


@case("add_into_product")
def gradients_of_one_input(make):
    def function(a, b, c, d, e):
        return (torch.mm(a, b).view(3, 3, 7) + torch.mm(c, d).view(3, 3, 7)) + e.view(3, 3, 7)
    return function, (make(9, 5), make(5, 7), make(9, 11), make(11, 7), make(9, 7))


@case("add_into_product")
def a_residual_that_is_a_view(make):
    def function(x, w, r):
        return r[1:, :7] + torch.mm(x.t(), w), torch.mm(x.t(), w) + r[:9, 2:]
    return function, (make(5, 9), make(5, 7), make(10, 9))


def _with_odd_values(t):
    t.view(-1)[:6] = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 6.0]).to(t.dtype)
    return t


@case("other_side")
def relu_from_its_input(make):
    def function(x, g):
        y = torch.relu(x)
        return y * y, torch.ops.aten.threshold_backward(g, y, 0)
    return function, (_with_odd_values(make(7, 5)), make(7, 5))


@case("other_side")
def relu6_from_its_output(make):
    def function(x, g):
        y = torch.ops.aten.hardtanh(x, 0.0, 6.0)
        return y + 1, torch.ops.aten.hardtanh_backward(g.t(), x.t(), 0.0, 6.0)
    return function, (_with_odd_values(make(7, 5) * 5), make(7, 5))


@case("other_side")
def leaky_relu_from_its_output(make):
    def function(x, g):
        y = torch.ops.aten.leaky_relu(x, 0.1)
        return y + 1, torch.ops.aten.leaky_relu_backward(g, x, 0.1, False)
    return function, (_with_odd_values(make(7, 5)), make(7, 5))


@case("cat_of_slices")
def chunks_in_order(make):
    def function(x):
        a, b, c = x.neg().view(5, 9, 3).split([2, 4, 3], 1)
        together = torch.cat([a, b, c], 1)
        return together.abs(), together[1:3] + 1
    return function, (make(45, 3),)


@case("cat_of_slices")
def columns_one_by_one(make):
    def function(x):
        return torch.cat([x[1:, i:i + 1] for i in (1, 3, 5)], 1) + x[1:, :3]
    return function, (make(7, 9),)


@case("slice_of_cat")
def halves_of_what_was_put_together(make):
    def function(a, b):
        together = torch.cat([a[:, 1:6], b], -1)
        return together[:, 2:5] + 1, together[1:, 5:] + together[:6, 5:]
    return function, (make(7, 7), make(7, 6))


@case("slice_of_cat")
def a_cat_that_stays(make):
    def function(a, b, c):
        together = torch.cat([a, b, c])
        return together + 1, together[3:8].neg(), together[1:6]
    return function, (make(3, 5), make(5, 5), make(7, 5))


@case("absorb_transpose")
def a_transposed_weight(make):
    def function(x, w):
        return torch.mm(w.t().clone(memory_format=torch.contiguous_format), x)
    return function, (make(9, 5), make(9, 7))


@case("absorb_transpose")
def keys_of_every_head(make):
    def function(q, k):
        keys = k.transpose(1, 2).contiguous()
        return torch.bmm(q, keys), torch.bmm(keys[:, :3], k)
    return function, (make(3, 5, 7), make(3, 9, 7))
