// By the formulas of XLA's HloCostAnalysis, without the positions of a window that lie in padding.
#include "lowtide/io/hlo/operations.h"

#include <algorithm>
#include <bit>

#include "lowtide/base/units.h"
#include "lowtide/io/hlo/async.h"
#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/hlo/counts.h"
#include "lowtide/io/hlo/opcode.h"

namespace lowtide::io::hlo {

namespace {

using Count = std::int64_t;

// The whole part of log2, at least 1.
Count log2_of(Count count) {
  const auto width = static_cast<Count>(std::bit_width(static_cast<std::uint64_t>(count)));
  return std::max<Count>(width - 1, 1);
}

class Counter {
 public:
  Counter(const Computation& within, const Instruction& one) : within_(within), one_(one) {}

  Count count() const {
    const std::string_view name = begun(one_.opcode);
    if (opcode_of(name).kind == OpcodeKind::elementwise) return numbers_of(one_.shape);
    if (name == "dot" || name == "ragged-dot" || name == "scaled-dot")
      return dot(integers_in(one_.attribute("lhs_contracting_dims")));
    if (name == "convolution") return convolution(one_.shape, operand(1));
    if (name == "custom-call") return custom_call();
    if (name == "reduce") return numbers_of(operand(0));
    if (name == "reduce-window") return product({numbers_of(one_.shape), window()});
    if (name == "select-and-scatter") return product({numbers_of(operand(1)), window()});
    if (name == "sort" || name == "topk") return sorted();
    if (name == "fft") return fft();
    if (name == "scatter") return numbers_of(operand(one_.operands.size() - 1));
    if (name == "cholesky") return product({numbers_of(operand(0)), last(operand(0))}) / 3;
    if (name == "triangular-solve") return product({numbers_of(one_.shape), last(operand(0))});
    if (name == "rng-bit-generator") return product({10, numbers_of(one_.shape)});
    if (name.starts_with("batch-norm")) return product({8, numbers_of(operand(0))});
    return 0;
  }

 private:
  const Shape& operand(std::size_t at) const {
    static const Shape none;
    return at < one_.operands.size() ? within_.instructions[one_.operands[at]].shape : none;
  }
  static Count last(const Shape& shape) { return shape.dims.empty() ? 1 : shape.dims.back(); }

  const Shape& result() const {
    const Shape* shape = &made_shape(one_);
    while (shape->is_tuple() && !shape->elements.empty()) shape = &shape->elements.front();
    return *shape;
  }

  Count dot(const std::vector<Count>& contracted) const {
    Count depth = 1;
    const Shape& left = operand(0);
    for (const Count dim : contracted)
      if (static_cast<std::size_t>(dim) < left.dims.size())
        depth = product({depth, left.dims[static_cast<std::size_t>(dim)]});
    return product({2, numbers_of(result()), depth});
  }

  // Each number of the result meets a kernel's column: all of it but the output features. A
  // dilated input is mostly zeros, which are skipped.
  Count convolution(const Shape& made, const Shape& kernel) const {
    const std::string_view labels = one_.attribute("dim_labels");
    const std::size_t begin = labels.find('_'), end = labels.find("->");
    if (begin == std::string_view::npos || end == std::string_view::npos || begin > end) return 0;
    const std::size_t features = labels.substr(begin + 1, end - begin - 1).find('o');
    Count column = 1;
    for (std::size_t i = 0; i < kernel.dims.size(); ++i)
      if (i != features) column = product({column, kernel.dims[i]});
    Count zeros = 1;
    for (const Count factor : integers_in(member_of(one_.attribute("window"), "lhs_dilate")))
      zeros = product({zeros, std::max<Count>(factor, 1)});
    return product({2, numbers_of(made), column}) / zeros;
  }

  Count custom_call() const {
    const std::string_view config = one_.attribute("backend_config");
    if (target().find("__cudnn$fmha") != std::string_view::npos) return attention(config);
    const auto contracted = numbers_under(config, "lhs_contracting_dimensions");
    if (!contracted.empty()) return dot(contracted);
    if (one_.attribute("dim_labels").empty() || one_.operands.size() < 2) return 0;
    if (target().find("Filter") != std::string_view::npos) return convolution(operand(1), result());
    if (target().find("Input") != std::string_view::npos)
      return convolution(operand(0), operand(1));
    return convolution(result(), operand(1));
  }

  std::string_view target() const { return one_.attribute("custom_call_target"); }

  // Two products with the scores, of which the configuration has the extents; five in a backward.
  Count attention(std::string_view config) const {
    const std::size_t scores = config.find("intermediate_tensor_shape");
    if (scores == std::string_view::npos) return 0;
    Count all = target().find("Backward") == std::string_view::npos ? 4 : 10;
    for (const Count extent : numbers_under(config.substr(scores), "dimensions"))
      all = product({all, extent});
    return product({all, last(operand(0))});
  }

  Count window() const {
    Count size = 1;
    for (const Count extent : integers_in(member_of(one_.attribute("window"), "size")))
      size = product({size, extent});
    return size;
  }

  Count sorted() const {
    const Count numbers = numbers_of(operand(0));
    return product({numbers, log2_of(std::max<Count>(last(operand(0)), 1))});
  }

  Count fft() const {
    Count length = 1;
    for (const Count extent : integers_in(one_.attribute("fft_length")))
      length = product({length, extent});
    return product({5, numbers_of(one_.shape), log2_of(std::max<Count>(length, 1))});
  }

  const Computation& within_;
  const Instruction& one_;
};

}  // namespace

std::int64_t numbers_of(const Shape& shape) {
  Ticks all;
  for_each_leaf(shape, [&](const Shape& leaf) { all = checked_add(all, Ticks(leaf.numbers())); });
  return all.count();
}

std::int64_t operations_of(const Computation& within, const Instruction& instruction) {
  return Counter(within, instruction).count();
}

}  // namespace lowtide::io::hlo
