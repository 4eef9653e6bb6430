// Nothing but spelling.
#include "support/sketch.h"

#include <charconv>

#include "lowtide/base/error.h"

namespace lowtide {

Sketch::Sketch(Indices bytes) {
  for (std::int64_t size : bytes) tensors_.emplace_back().bytes = Bytes(size);
}

Sketch& Sketch::op(Indices inputs, Indices outputs, std::int64_t time) {
  ops_.emplace_back().time = Ticks(time);
  OpLinks& links = links_.emplace_back();
  links.inputs = inputs;
  links.outputs = outputs;
  return *this;
}

Sketch& Sketch::workspace(std::int64_t bytes) {
  ops_.back().workspace = Bytes(bytes);
  return *this;
}

Sketch& Sketch::once() {
  ops_.back().recomputable = false;
  return *this;
}

Sketch& Sketch::barrier() {
  ops_.back().kind = kBarrierKind;
  return once();
}

Sketch& Sketch::network() {
  ops_.back().lane = Lane::network;
  return *this;
}

Sketch& Sketch::after(Indices ops) {
  links_.back().after = ops;
  return *this;
}

Sketch& Sketch::mutates(Indices tensors) {
  links_.back().mutates = tensors;
  return *this;
}

Sketch& Sketch::in_place(std::initializer_list<std::array<std::int64_t, 2>> pairs) {
  links_.back().in_place = pairs;
  return *this;
}

Sketch& Sketch::parameters(Indices tensors) {
  for (std::int64_t t : tensors) tensors_.at(static_cast<std::size_t>(t)).role = Role::parameter;
  return *this;
}

Sketch& Sketch::stays(Indices tensors) {
  for (std::int64_t t : tensors) tensors_.at(static_cast<std::size_t>(t)).stays = true;
  return *this;
}

Sketch& Sketch::on_host(Indices tensors) {
  for (std::int64_t t : tensors) tensors_.at(static_cast<std::size_t>(t)).home = Home::host;
  return *this;
}

Sketch& Sketch::releasable(Indices tensors) {
  for (std::int64_t t : tensors) tensors_.at(static_cast<std::size_t>(t)).releasable = true;
  return *this;
}

Sketch& Sketch::resident(std::int64_t bytes) {
  resident_ = bytes;
  return *this;
}

Sketch& Sketch::keep(Indices tensors) {
  kept_ = tensors;
  return *this;
}

Sketch& Sketch::order(Indices ops) {
  order_ = ops;
  return *this;
}

Graph Sketch::graph() const {
  GraphBuilder builder;
  builder.set_resident(Bytes(resident_));
  for (const Tensor& tensor : tensors_) builder.add_tensor(tensor);
  for (std::size_t i = 0; i < ops_.size(); ++i) builder.add_op(ops_[i], links_[i]);
  builder.set_outputs(kept_);
  if (!order_.empty()) builder.set_order(order_);
  return builder.build();
}

Plan steps(std::string_view words) {
  Plan plan;
  plan.machine = machine_by_hand();
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    constexpr std::string_view kLetters = "cifop";
    const std::size_t kind = kLetters.find(words[at]);
    check(kind != std::string_view::npos, "a step begins with c, i, f, o or p");
    std::vector<std::int32_t> numbers;
    for (const char* from = words.data() + at + 1; from < words.data() + end; ++from)
      from = std::from_chars(from, words.data() + end, numbers.emplace_back()).ptr;
    const Step step{kStepKinds[kind], numbers.at(0)};
    if (step.kind == StepKind::compute_in_place) {
      std::vector<TensorId> overwritten;
      for (std::size_t i = 1; i < numbers.size(); ++i)
        overwritten.emplace_back(static_cast<std::size_t>(numbers[i]));
      plan.add_compute(step.op(), overwritten);
    } else {
      plan.steps.push_back(step);
    }
    at = end + 1;
  }
  return plan;
}

Machine machine_by_hand() {
  return {{Ticks(5), Bytes(2), Ticks(1)}, {Ticks(3), Bytes(4), Ticks(1)}};
}

}  // namespace lowtide
