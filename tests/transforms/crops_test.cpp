// Splits of tensors of which one is a crop of another: a loss that leaves out the last row.
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/plan/transformed_problem.h"
#include "lowtide/transforms/apply.h"

#include "support/network.h"

namespace lowtide {
namespace {

TEST_CASE("crops: a cropped tensor is split where the longer tensor is") {
  const Graph graph = step_of({.batch = 9, .widths = {5, 7}, .in_place = false, .shifted = true});
  std::vector<Transform> transforms{hoist_of(graph)};
  const TransformedGraph now = apply_transforms(graph, transforms);
  const Split five = split_along(now, {{TensorId(0), 0}}, 5);
  transforms.emplace_back(split_along(now, {{TensorId(0), 0}}, 3));
  const TransformedGraph found = apply_transforms(graph, transforms);
  std::vector<std::int64_t> logits, rows, labels, ends;
  for (const OpId op : found.graph.order()) {
    const Op& one = found.graph.op(op);
    if (one.kind == "aten.mm" && one.results[0].shape[1] == 7 && one.operands[0].shape[1] == 5)
      logits.push_back(one.results[0].shape[0]);
    if (one.kind == "aten._log_softmax") {
      rows.push_back(one.results[0].shape[0]);
      CHECK(one.operands[0].shape == one.results[0].shape);
      CHECK(found.graph.bytes(one.results[0].tensor) == Bytes(28 * rows.back()));
    }
    if (one.kind == "aten.nll_loss_backward") {
      const Operand& target = one.operands[2];
      labels.push_back(target.offset);
      CHECK(target.shape == std::vector<std::int64_t>{rows[labels.size() - 1]});
      CHECK(found.graph.bytes(target.tensor) == Bytes(72));
    }
    if (one.kind == "aten.slice_backward") {
      ends.push_back(std::get<std::int64_t>(one.arguments[3].value.value));
      CHECK(one.results[0].shape[0] == 3);
    }
  }
  CHECK(logits == std::vector<std::int64_t>{3, 3, 3});
  CHECK(rows == std::vector<std::int64_t>{3, 3, 2});
  CHECK(labels == std::vector<std::int64_t>{1, 4, 7});
  CHECK(ends == std::vector<std::int64_t>{3, 3, 2});
  // Nine go into parts of 3, 3 and 3, of which the crop leaves 2; of 2, 2, 2, 2 and 1 it leaves 0.
  transforms.back() = five;
  CHECK_THROWS_WITH_AS(apply_transforms(graph, transforms),
                       doctest::Contains("which do not go into 5 parts of two or more"),
                       TransformRefused);
}

}  // namespace
}  // namespace lowtide
