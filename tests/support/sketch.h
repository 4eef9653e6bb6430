// Graphs and plans by hand, short enough to check with a pencil:
//   Sketch({10, 20, 5}).op({0}, {1}, 7).op({1}, {2}, 3).keep({2}).graph()
//   steps("c0 o1 c1 f1 p1")
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "lowtide/graph/builder.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

class Sketch {
 public:
  using Indices = std::initializer_list<std::int64_t>;

  // The bytes of each tensor.
  explicit Sketch(Indices bytes);

  Sketch& op(Indices inputs, Indices outputs, std::int64_t time = 1);
  // Of the latest op:
  Sketch& workspace(std::int64_t bytes);
  Sketch& once();
  Sketch& barrier();
  Sketch& network();
  Sketch& after(Indices ops);
  Sketch& mutates(Indices tensors);
  Sketch& in_place(std::initializer_list<std::array<std::int64_t, 2>> pairs);
  // Of the graph:
  Sketch& releasable(Indices tensors);
  Sketch& stays(Indices tensors);
  Sketch& parameters(Indices tensors);
  Sketch& on_host(Indices tensors);
  Sketch& resident(std::int64_t bytes);
  Sketch& keep(Indices tensors);
  Sketch& order(Indices ops);
  Graph graph() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Op> ops_;
  std::vector<OpLinks> links_;
  std::vector<std::int64_t> kept_, order_;
  std::int64_t resident_ = 0;
};

// "c0 f1 o2 p2 i3,4": compute, free, offload, prefetch, compute op 3 in place of tensor 4. The
// machine is `machine_by_hand`.
Plan steps(std::string_view words);

// Out: 5 + ceil(bytes / 2). In: 3 + ceil(bytes / 4).
Machine machine_by_hand();

}  // namespace lowtide
