"""Calls of every kind that the table of dimensions knows, on small tensors of odd sizes.

CASES: kind -> calls; a call takes a maker of tensors and gives an operator and its arguments.
"""

import lowtide.torch  # noqa: F401  (enters the operators of the package)
import torch

aten = torch.ops.aten
CASES = {}


def case(target, names="", kind=None):
    """names: number types beside f32, all of them for "all"."""
    def add(function):
        CASES.setdefault(kind or str(target.overloadpacket), []).append((target, function, names.split()))
        return function
    return add


class Make:
    """Tensors of one number type."""

    def __init__(self, dtype, seed=0):
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        if self.dtype.is_floating_point or self.dtype.is_complex:
            wide = torch.complex128 if self.dtype.is_complex else torch.float64
            return torch.randn(shape, generator=self.generator, dtype=wide).to(self.dtype)
        return self.index(8, *shape).to(self.dtype)

    def index(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def mask(self, *shape):
        return self.index(2, *shape).bool()

    def positive(self, *shape):
        return self(*shape).abs() + 1


ALL = "f64 bf16 f16"

# ---- pointwise

UNARY = """abs acos acosh alias angle asin asinh atan atanh ceil celu clone cos cosh deg2rad digamma elu erf erfc
erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 isfinite isinf isnan leaky_relu
lgamma log log10 log1p log2 log_sigmoid_forward logical_not logit mish nan_to_num neg rad2deg reciprocal relu
relu6 round rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink special_entr special_erfcx
special_i0e special_i1 special_i1e special_log_ndtr special_ndtri sqrt square tan tanh trunc ones_like zeros_like
_conj_physical""".split()
for name in UNARY:
    case(getattr(aten, name).default, "" if name.startswith("special") else "bf16")(lambda make: {"self": make.positive(6, 5, 9) / 12})
for name in ("bitwise_not", "neg", "abs", "sgn"):
    case(getattr(aten, name).default, "i64")(lambda make: {"self": make.index(9, 6, 5)})

BINARY = """add sub mul div atan2 copysign eq fmax fmin fmod ge gt heaviside hypot le logaddexp logaddexp2 logical_and
logical_or logical_xor lt maximum minimum ne remainder rsub xlogy float_power pow ldexp special_xlog1py floor_divide
max min""".split()
for name in BINARY:
    packet = getattr(aten, name)
    other = {"pow": "exponent", "float_power": "exponent", "heaviside": "values"}.get(name, "other")
    overload = next(getattr(packet, o) for o in ("Tensor", "other", "Tensor_Tensor", "default") if o in packet.overloads())
    for shapes in (((6, 5, 9), (6, 5, 9)), ((6, 5, 9), (5, 1)), ((5, 9), (6, 1, 9))):
        case(overload, "bf16" if name in ("add", "mul") else "")(
            lambda make, other=other, shapes=shapes: {"self": make.positive(*shapes[0]), other: make.positive(*shapes[1])})
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    case(getattr(aten, name).Tensor)(lambda make: {"self": make.index(9, 6, 5), "other": make.index(9, 5)})
case(aten.complex.default)(lambda make: {"real": make(6, 5), "imag": make(6, 5)})
case(aten.polar.default)(lambda make: {"abs": make(6, 5), "angle": make(5)})
case(aten.polygamma.default)(lambda make: {"n": 1, "self": make.positive(6, 5)})
case(aten.add.Scalar)(lambda make: {"self": make(6, 5), "other": 3})
case(aten._to_copy.default)(lambda make: {"self": make(6, 5), "dtype": torch.bfloat16})
case(aten._to_copy.default)(lambda make: {"self": make(5, 6, 4).transpose(0, 1), "dtype": torch.float64})
case(aten.clone.default)(lambda make: {"self": make(4, 6, 5).permute(2, 0, 1), "memory_format": torch.contiguous_format})
case(aten.clone.default)(lambda make: {"self": make(7, 5)[1:], "memory_format": torch.contiguous_format})
case(aten.copy.default)(lambda make: {"self": make(6, 5), "src": make(5)})
case(aten.fill.Scalar)(lambda make: {"self": make(6, 5), "value": 2})
case(aten.full_like.default)(lambda make: {"self": make(6, 5), "fill_value": 2})
case(aten.clamp.default)(lambda make: {"self": make(6, 5), "min": 0})
case(aten.clamp_min.default)(lambda make: {"self": make(6, 5), "min": 0})
case(aten.clamp_max.default)(lambda make: {"self": make(6, 5), "max": 0})
case(aten.threshold.default)(lambda make: {"self": make(6, 5), "threshold": 0, "value": 1})
case(aten.where.self)(lambda make: {"condition": make.mask(6, 1), "self": make(6, 5), "other": make(5)})
case(aten.masked_fill.Scalar)(lambda make: {"self": make(4, 6, 5), "mask": make.mask(6, 5), "value": -1})
case(aten.masked_fill.Tensor)(lambda make: {"self": make(6, 5), "mask": make.mask(6, 5), "value": make()})
case(aten.addcmul.default)(lambda make: {"self": make(6, 5), "tensor1": make(6, 1), "tensor2": make(5)})
case(aten.addcdiv.default)(lambda make: {"self": make(6, 5), "tensor1": make(6, 5), "tensor2": make.positive(6, 5)})
case(aten.lerp.Tensor)(lambda make: {"self": make(6, 5), "end": make(6, 5), "weight": make(6, 5)})
case(aten._prelu_kernel.default)(lambda make: {"self": make(6, 4, 5), "weight": make(4, 1)})
case(aten._prelu_kernel_backward.default)(
    lambda make: {"grad_output": make(6, 4, 5), "self": make(6, 4, 5), "weight": make(4, 1)})
case(torch.ops.lowtide.dropout_apply.default)(
    lambda make: {"input": make(6, 5), "mask": make.mask(6, 5), "p": 0.25})
BACKWARD = {"sigmoid": "output", "tanh": "output", "gelu": "self", "silu": "self", "mish": "self", "hardswish": "self",
            "hardsigmoid": "self", "logit": "self"}
for name, second in BACKWARD.items():
    case(getattr(aten, f"{name}_backward").default)(
        lambda make, second=second: {"grad_output": make(6, 5), second: make(6, 5) / 8})
for name, rest in {"elu": {"alpha": 1, "scale": 1, "input_scale": 1, "is_result": False}, "threshold": {"threshold": 0},
                   "hardtanh": {"min_val": -1, "max_val": 1}, "leaky_relu": {"negative_slope": .1, "self_is_result": False},
                   "softplus": {"beta": 1, "threshold": 20}, "softshrink": {"lambd": .5}, "hardshrink": {"lambd": .5},
                   "native_dropout": {"scale": 2.0}}.items():
    target = getattr(aten, f"{name}_backward").default
    first, second = (a.name for a in target._schema.arguments if "Tensor" in str(a.type))
    case(target)(lambda make, first=first, second=second, rest=rest: {
        first: make(6, 5), second: make.mask(6, 5) if second == "mask" else make(6, 5)} | rest)
case(aten.log_sigmoid_backward.default)(
    lambda make: {"grad_output": make(6, 5), "self": make(6, 5), "buffer": make.positive(6, 5)})
case(aten.rrelu_with_noise_backward.default)(lambda make: {
    "grad_output": make(6, 5), "self": make(6, 5), "noise": make(6, 5), "lower": .1, "upper": .3, "training": True,
    "self_is_result": False})
for name in ("zeros", "ones"):
    case(getattr(aten, name).default)(lambda make: {"size": [6, 5]})
    case(getattr(aten, f"new_{name}").default)(lambda make: {"self": make(3, 7), "size": [6, 5]})
case(aten.full.default)(lambda make: {"size": [6, 5], "fill_value": 2})
case(aten.new_full.default)(lambda make: {"self": make(3), "size": [6, 5], "fill_value": 2})
case(aten.scalar_tensor.default)(lambda make: {"s": 2.0})
for target, rest in ((aten.arange.default, {"end": 6}), (aten.linspace.default, {"start": 0, "end": 1, "steps": 6}),
                     (aten.logspace.default, {"start": 0, "end": 1, "steps": 6}), (aten.eye.default, {"n": 6}),
                     (aten.rand.default, {"size": [6, 5]}), (aten.randn.default, {"size": [6, 5]}),
                     (aten.randint.default, {"high": 9, "size": [6, 5]}), (aten.randperm.default, {"n": 6})):
    case(target)(lambda make, rest=rest: dict(rest))
for target, rest in ((aten.rand_like.default, {}), (aten.randn_like.default, {}), (aten.randint_like.default, {"high": 9}),
                     (aten.bernoulli.default, {}),
                     (aten.bernoulli.p, {"p": .5}), (aten.multinomial.default, {"num_samples": 2}),
                     (aten.native_dropout.default, {"p": .5, "train": True}), (aten.exponential.default, {}),
                     (aten.uniform.default, {}), (aten.normal_functional.default, {}), (aten.normal.Tensor_float, {})):
    first = target._schema.arguments[0].name
    name = {"native_dropout": "input"}.get(target._opname, first)
    case(target)(lambda make, name=name, rest=rest: {name: make(6, 5).sigmoid()} | rest)

# ---- products

for transposed in (False, True):
    def factor(make, rows, columns, transposed=transposed):
        return make(columns, rows).t() if transposed else make(rows, columns)
    case(aten.mm.default, ALL + " i64 c64")(lambda make, f=factor: {"self": f(make, 6, 10), "mat2": f(make, 10, 9)})
    for beta in (1, 0):
        case(aten.addmm.default)(lambda make, f=factor, beta=beta: {
            "self": make(9), "mat1": f(make, 6, 10), "mat2": f(make, 10, 9), "beta": beta})
case(aten.addmm.default)(lambda make: {"self": make(6, 9), "mat1": make(6, 4), "mat2": make(4, 9)})
case(aten.bmm.default, ALL)(lambda make: {"self": make(6, 4, 5), "mat2": make(6, 9, 5).transpose(1, 2)})
case(aten.baddbmm.default)(lambda make: {"self": make(4, 1), "batch1": make(6, 4, 5), "batch2": make(6, 5, 9)})
case(aten.baddbmm.default)(lambda make: {"self": make(6, 4, 9), "batch1": make(6, 4, 5), "batch2": make(6, 5, 9), "beta": 0})
case(aten.mv.default)(lambda make: {"self": make(6, 5), "vec": make(5)})
case(aten.addmv.default)(lambda make: {"self": make(6), "mat": make(6, 5), "vec": make(5)})
case(aten.dot.default)(lambda make: {"self": make(6), "tensor": make(6)})
case(aten._cdist_forward.default)(
    lambda make: {"x1": make(3, 6, 5), "x2": make(3, 4, 5), "p": 2.0, "compute_mode": None})

# ---- reductions and what mixes one dimension

for name in ("sum", "nansum", "mean", "amax", "amin", "any", "all", "logsumexp"):
    packet = getattr(aten, name)
    overload = getattr(packet, {"sum": "dim_IntList", "mean": "dim", "any": "dims", "all": "dims"}.get(name, "default"))
    for dims, keep in (([1], False), ([0, -1], True), ([-2], False)):
        case(overload, "bf16" if name in ("sum", "mean") else "")(
            lambda make, dims=dims, keep=keep: {"self": make(6, 5, 9), "dim": dims, "keepdim": keep})
case(aten.sum.dim_IntList, "i64")(lambda make: {"self": make.mask(6, 5), "dim": [0]})
for name in ("sum", "mean", "max", "min", "argmax", "argmin", "median", "nanmedian", "count_nonzero", "prod", "any", "all",
             "std", "var"):
    case(getattr(aten, name).default)(lambda make: {"self": make(6, 5)})
for name in ("max", "min", "prod", "median", "nanmedian", "mode", "argmax", "argmin", "any", "all"):
    packet = getattr(aten, name)
    overload = next(getattr(packet, o) for o in ("dim", "dim_int", "default") if o in packet.overloads())
    for keep in (False, True):
        case(overload)(lambda make, keep=keep: {"self": make(6, 5, 9), "dim": 1, "keepdim": keep})
case(aten.count_nonzero.dim_IntList)(lambda make: {"self": make(6, 5, 9), "dim": [1]})
case(aten.kthvalue.default)(lambda make: {"self": make(6, 5, 9), "k": 2, "dim": 1})
case(aten.linalg_vector_norm.default)(lambda make: {"self": make(6, 5, 9), "dim": [1]})
case(aten.norm.ScalarOpt_dim)(lambda make: {"self": make(6, 5, 9), "p": 2, "dim": [1]})
for name in ("std", "var", "std_mean", "var_mean"):
    case(getattr(aten, name).correction)(lambda make: {"self": make(6, 5, 9), "dim": [1]})
for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "argsort"):
    for dim in (0, -1):
        case(getattr(aten, name).default)(lambda make, dim=dim: {"self": make(6, 5, 9), "dim": dim})
case(aten.topk.default)(lambda make: {"self": make(6, 5, 9), "k": 3, "dim": 1})
for name in ("_softmax", "_log_softmax"):
    for dim in (0, -1):
        case(getattr(aten, name).default, "bf16")(
            lambda make, dim=dim: {"self": make(6, 5, 9), "dim": dim, "half_to_float": False})
        case(getattr(aten, f"{name}_backward_data").default)(lambda make, dim=dim: {
            "grad_output": make(6, 5, 9), "output": make(6, 5, 9).softmax(dim), "dim": dim, "input_dtype": torch.float32})
case(aten._safe_softmax.default)(lambda make: {"self": make(6, 5, 9), "dim": 1})
case(aten.flip.default)(lambda make: {"self": make(6, 5, 9), "dims": [0, 2]})
case(aten.roll.default)(lambda make: {"self": make(6, 5, 9), "shifts": [2], "dims": [1]})
case(aten.roll.default)(lambda make: {"self": make(6, 5, 9), "shifts": [2]})
case(aten.glu.default)(lambda make: {"self": make(6, 5, 8), "dim": -1})
case(aten.glu_backward.default)(lambda make: {"grad_output": make(6, 5, 4), "self": make(6, 5, 8), "dim": -1})
case(aten._fft_r2c.default)(lambda make: {"self": make(6, 5, 9), "dim": [1], "normalization": 0, "onesided": True})
case(aten._fft_c2c.default, kind=None)(
    lambda make: {"self": torch.complex(make(6, 5, 9), make(6, 5, 9)), "dim": [1], "normalization": 0, "forward": True})
case(aten._fft_c2r.default)(
    lambda make: {"self": torch.complex(make(6, 5, 9), make(6, 5, 9)), "dim": [2], "normalization": 0, "last_dim_size": 16})
case(aten.tril.default)(lambda make: {"self": make(6, 5, 9)})
case(aten.triu.default)(lambda make: {"self": make(6, 5, 9)})
case(aten.bucketize.Tensor)(lambda make: {"self": make(6, 5), "boundaries": torch.arange(5.) - 2})

# ---- layers

for groups in (1, 2):
    for transposed in (False, True):
        for bias in (False, True):
            def convolution(make, groups=groups, transposed=transposed, bias=bias):
                weight = make(4, 6 // groups, 3) if not transposed else make(6, 4 // groups, 3)
                return {"input": make(6, 6, 7), "weight": weight, "bias": make(4) if bias else None, "stride": [1],
                        "padding": [1], "dilation": [1], "transposed": transposed, "output_padding": [0], "groups": groups}
            case(aten.convolution.default)(convolution)

            def backward(make, forward=convolution, bias=bias):
                given = forward(make)
                del given["bias"]
                return {"grad_output": make(6, 4, 7)} | given | {
                    "bias_sizes": [4] if bias else None, "output_mask": [True, True, bias]}
            case(aten.convolution_backward.default)(backward)


def image(make, channels=4, batch=6):
    return make(batch, channels, 5, 7)


case(aten.convolution.default, "bf16")(lambda make: {
    "input": image(make).to(memory_format=torch.channels_last), "weight": make(6, 4, 3, 3), "bias": None, "stride": [1, 1],
    "padding": [0, 0], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0], "groups": 1})
case(aten.native_layer_norm.default, "bf16")(
    lambda make: {"input": make(6, 5, 9), "normalized_shape": [9], "weight": make(9), "bias": make(9), "eps": 1e-5})
case(aten.native_layer_norm.default)(
    lambda make: {"input": make(6, 5, 9), "normalized_shape": [5, 9], "weight": None, "bias": None, "eps": 1e-5})
case(aten.native_layer_norm_backward.default)(lambda make: {
    "grad_out": make(6, 5, 9), "input": make(6, 5, 9), "normalized_shape": [9], "mean": make(6, 5, 1),
    "rstd": make.positive(6, 5, 1), "weight": make(9), "bias": make(9), "output_mask": [True, True, True]})
case(aten._fused_rms_norm.default)(
    lambda make: {"input": make(6, 5, 9), "normalized_shape": [9], "weight": make(9), "eps": 1e-5})
case(aten.native_group_norm.default)(lambda make: {
    "input": image(make), "weight": make(4), "bias": make(4), "N": 6, "C": 4, "HxW": 35, "group": 2, "eps": 1e-5})
case(aten.native_group_norm_backward.default)(lambda make: {
    "grad_out": image(make), "input": image(make), "mean": make(6, 2), "rstd": make.positive(6, 2), "weight": make(4),
    "N": 6, "C": 4, "HxW": 35, "group": 2, "output_mask": [True, True, True]})
for training in (False, True):
    case(aten.native_batch_norm.default)(lambda make, training=training: {
        "input": image(make), "weight": make(4), "bias": make(4), "running_mean": None if training else make(4),
        "running_var": None if training else make.positive(4), "training": training, "momentum": .1, "eps": 1e-5})
    case(aten._native_batch_norm_legit.no_stats if training else aten._native_batch_norm_legit_no_training.default)(
        lambda make, training=training: {"input": image(make), "weight": make(4), "bias": make(4), "momentum": .1, "eps": 1e-5}
        | ({"training": True} if training else {"running_mean": make(4), "running_var": make.positive(4)}))
    case(aten.native_batch_norm_backward.default)(lambda make, training=training: {
        "grad_out": image(make), "input": image(make), "weight": make(4), "running_mean": make(4),
        "running_var": make.positive(4), "save_mean": make(4) if training else make(0),
        "save_invstd": make.positive(4) if training else make(0), "train": training, "eps": 1e-5,
        "output_mask": [True, True, True]})


def pooled(name, make, operands, **rest):
    """The arguments of a pool's backward, from a run of the pool itself."""
    x = make(6, 4, *operands)
    made = getattr(aten, name).default(x, *rest["given"])
    out = made[0] if isinstance(made, tuple) else made
    given = {"grad_output": torch.ones_like(out) * make(*out.shape), "self": x}
    return given | {"indices": made[1]} if isinstance(made, tuple) else given


for d, space in ((2, (6, 8)), (3, (4, 6, 4))):
    two, one, none = [2] * d, [1] * d, [0] * d
    maximum = {"kernel_size": two, "stride": two, "padding": none, "dilation": one, "ceil_mode": False}
    average = {"kernel_size": two, "stride": two, "padding": none, "ceil_mode": False, "count_include_pad": True,
               "divisor_override": None}
    case(getattr(aten, f"max_pool{d}d_with_indices").default)(
        lambda make, space=space, rest=maximum: {"self": make(6, 4, *space)} | rest)
    case(getattr(aten, f"max_pool{d}d_with_indices_backward").default)(lambda make, d=d, space=space, rest=maximum: pooled(
        f"max_pool{d}d_with_indices", make, space, given=tuple(rest.values())) | rest)
    case(getattr(aten, f"avg_pool{d}d").default)(lambda make, space=space, rest=average: {"self": make(6, 4, *space)} | rest)
    case(getattr(aten, f"avg_pool{d}d_backward").default)(lambda make, d=d, space=space, rest=average: pooled(
        f"avg_pool{d}d", make, space, given=tuple(rest.values())) | rest)
    case(getattr(aten, f"_adaptive_avg_pool{d}d").default)(
        lambda make, space=space, two=two: {"self": make(6, 4, *space), "output_size": two})
    case(getattr(aten, f"_adaptive_avg_pool{d}d_backward").default)(lambda make, d=d, space=space, two=two: pooled(
        f"_adaptive_avg_pool{d}d", make, space, given=(two,)))
    case(getattr(aten, f"adaptive_max_pool{d}d").default)(
        lambda make, space=space, two=two: {"self": make(6, 4, *space), "output_size": two})
    case(getattr(aten, f"adaptive_max_pool{d}d_backward").default)(lambda make, d=d, space=space, two=two: pooled(
        f"adaptive_max_pool{d}d", make, space, given=(two,)))
for d in (1, 2, 3):
    for way in ("reflection", "replication"):
        space, padding = (4, 5, 6)[:d], [1] * (2 * d)
        case(getattr(aten, f"{way}_pad{d}d").default)(
            lambda make, space=space, padding=padding: {"self": make(6, 4, *space), "padding": padding})
        case(getattr(aten, f"{way}_pad{d}d_backward").default)(lambda make, space=space, padding=padding: {
            "grad_output": make(6, 4, *(n + 2 for n in space)), "self": make(6, 4, *space), "padding": padding})
case(aten.pixel_shuffle.default)(lambda make: {"self": make(6, 3, 8, 5, 7), "upscale_factor": 2})
case(aten.pixel_unshuffle.default)(lambda make: {"self": make(6, 3, 2, 4, 6), "downscale_factor": 2})
RESAMPLED = {"upsample_nearest1d": 1, "upsample_nearest2d": 2, "upsample_nearest3d": 3, "upsample_linear1d": 1,
             "upsample_bilinear2d": 2, "_upsample_bilinear2d_aa": 2, "upsample_bicubic2d": 2, "upsample_trilinear3d": 3}
for name, d in RESAMPLED.items():
    rest = {} if "nearest" in name else {"align_corners": False}
    case(getattr(aten, name).default)(
        lambda make, d=d, rest=rest: {"self": make(6, 4, *(4, 3, 3)[:d]), "output_size": [8, 6, 6][:d]} | rest)
    case(getattr(aten, f"{name}_backward").default)(lambda make, d=d, rest=rest: {
        "grad_output": make(6, 4, *(8, 6, 6)[:d]), "output_size": [8, 6, 6][:d], "input_size": [6, 4, *(4, 3, 3)[:d]]} | rest)
patches = {"kernel_size": [2, 2], "dilation": [1, 1], "padding": [0, 0], "stride": [1, 1]}
case(aten.im2col.default)(lambda make: {"self": image(make)} | patches)
case(aten.col2im.default)(lambda make: {"self": make(6, 16, 24), "output_size": [5, 7]} | patches)
case(aten.affine_grid_generator.default)(
    lambda make: {"theta": make(6, 2, 3), "size": [6, 4, 5, 7], "align_corners": False})
for d in (2, 3):
    space = (4, 5, 6)[:d]
    sampled = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    case(getattr(aten, f"grid_sampler_{d}d").default)(lambda make, d=d, space=space, rest=sampled: {
        "input": make(6, 4, *space), "grid": make(6, *space, d).tanh()} | rest)
    case(getattr(aten, f"grid_sampler_{d}d_backward").default)(lambda make, d=d, space=space, rest=sampled: {
        "grad_output": make(6, 4, *space), "input": make(6, 4, *space), "grid": make(6, *space, d).tanh()} | rest
        | {"output_mask": [True, True]})

# ---- attention


def attended(make, causal, mask, heads=4):
    q = make(6, 5, 4, 8).transpose(1, 2)
    given = {"query": q, "key": make(6, heads, 5 if causal else 7, 8), "value": make(6, heads, 5 if causal else 7, 8),
             "dropout_p": 0.0, "is_causal": causal}
    return given | {"attn_mask": make(*mask) if mask else None}


flash = aten._scaled_dot_product_flash_attention_for_cpu
for causal, mask in ((False, None), (True, None), (False, (5, 7)), (False, (6, 1, 5, 7))):
    case(flash.default, "bf16")(lambda make, causal=causal, mask=mask: attended(make, causal, mask))

    def attention_backward(make, causal=causal, mask=mask):
        given = attended(make, causal, mask)
        out, sums = flash.default(**given)
        return {"grad_out": make(*out.shape)} | given | {"out": out, "logsumexp": sums}
    case(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)(attention_backward)

# ---- losses

for reduction in (0, 1, 2):
    for weighted in (False, True):
        def nll(make, reduction=reduction, weighted=weighted, space=()):
            target = make.index(5, 6, *space)
            target.flatten()[2] = -100
            return {"self": make(6, 5, *space), "target": target, "weight": make.positive(5) if weighted else None,
                    "reduction": reduction, "ignore_index": -100}
        for name, space in (("nll_loss", ()), ("nll_loss2d", (4, 3))):
            case(getattr(aten, f"{name}_forward").default)(lambda make, f=nll, space=space: f(make, space=space))

            def nll_backward(make, f=nll, name=name, space=space):
                given = f(make, space=space)
                out, total = getattr(aten, f"{name}_forward").default(**given)
                return {"grad_output": make(*out.shape)} | given | {"total_weight": total}
            case(getattr(aten, f"{name}_backward").default)(nll_backward)
    for name, rest in (("mse_loss", {}), ("smooth_l1_loss", {"beta": 1.0}), ("huber_loss", {"delta": 1.0}),
                       ("soft_margin_loss", {}), ("binary_cross_entropy", {}), ("binary_cross_entropy_with_logits", {})):
        second = {"self": (6, 5, 9), "target": (6, 5, 9)}

        def loss(make, reduction=reduction, rest=rest, name=name):
            given = {"self": make(6, 5, 9), "target": make(6, 5, 9)}
            if name == "binary_cross_entropy":
                given = {key: value.sigmoid() for key, value in given.items()} | {"weight": make.positive(5, 1)}
            return given | {"reduction": reduction} | rest
        case(getattr(aten, name).default)(loss)
        if name != "binary_cross_entropy_with_logits":
            case(getattr(aten, f"{name}_backward").default)(lambda make, loss=loss, reduction=reduction: {
                "grad_output": make(6, 5, 9) if reduction == 0 else make()} | loss(make))

# ---- choosing and placing

case(aten.embedding.default, "bf16")(lambda make: {"weight": make(11, 8), "indices": make.index(11, 6, 5)})
for scaled in (False, True):
    case(aten.embedding_dense_backward.default)(lambda make, scaled=scaled: {
        "grad_output": make(6, 5, 8), "indices": make.index(11, 6, 5), "num_weights": 11, "padding_idx": 3,
        "scale_grad_by_freq": scaled})
case(aten.cat.default, "bf16 i64")(lambda make: {"tensors": [make(6, 4), make(6, 8), make(6, 4)], "dim": 1})
case(aten.cat.default)(lambda make: {"tensors": [make(6, 4), make(12, 4)], "dim": 0})
case(aten.stack.default)(lambda make: {"tensors": [make(6, 4), make(6, 4)], "dim": 1})
case(aten.index_select.default)(lambda make: {"self": make(6, 5, 9), "dim": 1, "index": make.index(5, 8)})
case(aten.gather.default)(lambda make: {"self": make(6, 5, 9), "dim": 1, "index": make.index(5, 6, 8, 9)})
case(aten.gather.default)(lambda make: {"self": make(6, 5, 9), "dim": 1, "index": make.index(5, 4, 8, 7)})
case(aten.scatter.src)(
    lambda make: {"self": make(6, 5, 9), "dim": 0, "index": make.index(6, 1, 5, 9), "src": make(1, 5, 9)})
case(aten.scatter.value)(lambda make: {"self": make(6, 5), "dim": 1, "index": make.index(5, 6, 2), "value": 2})
case(aten.scatter_add.default)(
    lambda make: {"self": make(6, 5, 9), "dim": 1, "index": make.index(5, 6, 8, 9), "src": make(6, 8, 9)})
case(aten.scatter_reduce.two)(lambda make: {
    "self": make(6, 5, 9), "dim": 1, "index": make.index(5, 6, 8, 9), "src": make(6, 8, 9), "reduce": "amax"})
case(aten.index_add.default)(
    lambda make: {"self": make(6, 5, 9), "dim": 1, "index": make.index(5, 8), "source": make(6, 8, 9)})
case(aten.index_copy.default)(
    lambda make: {"self": make(6, 5, 9), "dim": 1, "index": torch.tensor([3, 0]), "source": make(6, 2, 9)})
case(aten.index_fill.int_Scalar)(lambda make: {"self": make(6, 5, 9), "dim": 1, "index": torch.tensor([3, 0]), "value": 1})
INDEXED = (lambda make: [make.index(4, 6, 5)], lambda make: [None, make.index(6, 8)],
           lambda make: [None, make.index(6, 8, 1), make.index(9, 4)], lambda make: [make.index(4, 8), None, make.index(9, 8)])
for indices in INDEXED:
    for name in ("index", "_unsafe_index"):
        case(getattr(aten, name).Tensor)(lambda make, indices=indices: {"self": make(4, 6, 9), "indices": indices(make)})
    for name in ("index_put", "_unsafe_index_put"):
        def put(make, indices=indices):
            x, where = make(4, 6, 9), indices(make)
            return {"self": x, "indices": where, "values": make(*aten.index.Tensor(x, where).shape), "accumulate": True}
        case(getattr(aten, name).default)(put)
case(aten.index.Tensor)(lambda make: {"self": make(6, 5), "indices": [make.mask(6)]})
case(aten.slice_backward.default)(
    lambda make: {"grad_output": make(6, 3, 9), "input_sizes": [6, 5, 9], "dim": 1, "start": 1, "end": 4, "step": 1})
# Gradients of crops.
case(aten.slice_backward.default)(
    lambda make: {"grad_output": make(6, 8, 3), "input_sizes": [6, 9, 3], "dim": 1, "start": 0, "end": 8, "step": 1})
case(aten.slice_backward.default, ALL)(
    lambda make: {"grad_output": make(7, 3), "input_sizes": [9, 3], "dim": -2, "start": 0, "end": 7, "step": 1})
case(aten.select_backward.default)(lambda make: {"grad_output": make(6, 9), "input_sizes": [6, 5, 9], "dim": 1, "index": 2})
case(aten.unfold_backward.default)(
    lambda make: {"grad_in": make(6, 4, 9, 2), "input_sizes": [6, 5, 9], "dim": 1, "size": 2, "step": 1})
case(aten.slice_scatter.default)(
    lambda make: {"self": make(6, 5, 9), "src": make(6, 3, 9), "dim": 1, "start": 1, "end": 4, "step": 1})
case(aten.select_scatter.default)(lambda make: {"self": make(6, 5, 9), "src": make(6, 9), "dim": 1, "index": 2})
case(aten.constant_pad_nd.default)(lambda make: {"self": make(6, 5, 9), "pad": [1, 2], "value": 0})
case(aten.constant_pad_nd.default)(lambda make: {"self": make(6, 5, 9), "pad": [0, 0, 0, -1], "value": 1})
case(aten.repeat.default)(lambda make: {"self": make(5, 1), "repeats": [6, 1, 4]})
case(aten.repeat.default)(lambda make: {"self": make(6, 5), "repeats": [1, 2]})
case(aten.repeat.default)(lambda make: {"self": make(4), "repeats": [6]})
