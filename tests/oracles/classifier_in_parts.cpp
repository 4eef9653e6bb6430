// The same walk as support/network.cpp's, once for each part.
#include "oracles/classifier_in_parts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lowtide {

namespace {

using Index = Network::Index;

class Writer {
 public:
  Writer(const Classifier& classifier, std::int64_t parts)
      : c_(classifier),
        original_(step_of(classifier)),
        parts_(parts),
        layers_(c_.widths.size() - 1) {}

  Graph write() {
    x_ = net_.tensor({c_.batch, c_.widths[0]}, c_.dtype, Role::input);
    target_ = net_.tensor({c_.batch}, "i64", Role::input);
    for (std::size_t i = 0; i < layers_; ++i)
      weights_.push_back(net_.tensor({c_.widths[i], c_.widths[i + 1]}, c_.dtype, Role::parameter));
    tangent_ = net_.tensor({}, c_.dtype);
    net_.op("tangent", {}, {tangent_});
    priced({}, {});
    if (c_.dropout) {
      mask_ = net_.tensor({c_.batch, c_.widths[1]}, "bool");
      net_.op("mask", {}, {mask_}).recomputable = false;
      priced(time_of("lowtide.dropout_mask"), Bytes(3));
    }
    total_ = net_.tensor({}, c_.dtype);
    net_.op("count", {net_.whole("", target_)}, {total_});
    priced(time_of("aten.nll_loss_forward"), Bytes(3));
    const std::int64_t most = (c_.batch + parts_ - 1) / parts_;
    for (part_ = 0; part_ < parts_; ++part_) {
      first_ = part_ * most;
      count_ = std::min(most, c_.batch - first_);
      write_part();
    }
    std::vector<Operand> handed{net_.whole("", loss_.sum)};
    for (const Sum& sum : gradients_) handed.push_back(net_.whole("", sum.sum));
    net_.op(std::string(kBarrierKind), handed, {}).recomputable = false;
    priced(Ticks(static_cast<std::int64_t>(layers_)), {});
    net_.keep(loss_.sum);
    for (const Sum& sum : gradients_) net_.keep(sum.sum);
    return net_.graph();
  }

 private:
  struct Sum {
    Index sum = 0;  // so far
  };

  void priced(Ticks time, Bytes workspace) {
    net_.latest_op().time = time;
    net_.latest_op().workspace = workspace;
  }
  Ticks time_of(const std::string& kind) const {
    for (const OpId op : original_.order())
      if (original_.op(op).kind == kind) return original_.time(op);
    return {};
  }
  Index slice(std::int64_t width) { return net_.tensor({count_, width}, c_.dtype); }
  Operand rows(Index tensor) const { return net_.rows("", tensor, first_, count_); }

  // The next op of the step, as a part of it.
  void op(const std::vector<Operand>& operands, Index result) {
    while (original_.is_barrier(OpId(next_)) ||
           original_.op(OpId(next_)).kind == "lowtide.dropout_mask")
      ++next_;
    const OpPrice price = part_price(original_.op(OpId(next_)), OpId(next_), count_, c_.batch);
    net_.op("part", operands, {result});
    priced(price.time, price.workspace);
    ++next_;
  }

  void write_part();
  void add(Sum& sum, Index value);

  const Classifier& c_;
  Graph original_;
  std::int64_t parts_, part_ = 0, first_ = 0, count_ = 0;
  std::size_t layers_, next_ = 0;
  Network net_;
  Index x_ = 0, target_ = 0, tangent_ = 0, mask_ = 0, total_ = 0;
  std::vector<Index> weights_;
  Sum loss_;
  std::vector<Sum> gradients_;
};

// A sum begins as the first part's value. Of half precision and more than two parts it is kept in
// single precision in between.
void Writer::add(Sum& sum, Index value) {
  if (part_ == 0) {
    sum.sum = value;
    return;
  }
  const bool last = part_ + 1 == parts_, wide = c_.dtype == "bf16" && parts_ > 2;
  const Bytes bytes = net_.at(value).bytes;
  const Index result = net_.tensor(net_.at(value).shape, wide && !last ? "f32" : c_.dtype);
  net_.op("add", {net_.whole("", sum.sum), net_.whole("", value)}, {result});
  const TensorPrice price = join_price(bytes, TensorId(0));
  priced(price.time, price.workspace);
  if (!wide || (part_ > 1 && !last)) net_.in_place(sum.sum, result);
  if (!wide || last) net_.in_place(value, result);
  sum.sum = result;
}

void Writer::write_part() {
  next_ = 0;
  std::vector<Operand> inputs;
  std::vector<Index> activated;
  Operand at = rows(x_);
  for (std::size_t i = 0; i < layers_; ++i) {
    inputs.push_back(at);
    const Index product = slice(c_.widths[i + 1]);
    op({at, net_.whole("", weights_[i])}, product);
    at = net_.whole("", product);
    if (i + 1 == layers_) break;
    const Index relu = slice(c_.widths[i + 1]);
    op({at}, relu);
    if (c_.in_place) net_.in_place(product, relu);
    activated.push_back(relu);
    at = net_.whole("", relu);
    if (i > 0 || !c_.dropout) continue;
    const Index dropped = slice(c_.widths[i + 1]);
    op({at, rows(mask_)}, dropped);
    at = net_.whole("", dropped);
  }
  const Index logarithm = slice(c_.widths.back()), loss = net_.tensor({}, c_.dtype);
  op({at}, logarithm);
  if (c_.in_place) net_.in_place(static_cast<Index>(at.tensor.index()), logarithm);
  op({net_.whole("", logarithm), rows(target_), net_.whole("", total_)}, loss);
  add(loss_, loss);

  const Index of_logarithm = slice(c_.widths.back());
  op({net_.whole("", tangent_), net_.whole("", logarithm), rows(target_), net_.whole("", total_)},
     of_logarithm);
  Index gradient = slice(c_.widths.back());
  op({net_.whole("", of_logarithm), net_.whole("", logarithm)}, gradient);
  gradients_.resize(layers_);
  for (std::size_t i = layers_; i-- > 0;) {
    const Index of_weight = net_.tensor({c_.widths[i], c_.widths[i + 1]}, c_.dtype);
    op({inputs[i], net_.whole("", gradient)}, of_weight);
    add(gradients_[layers_ - 1 - i], of_weight);
    if (i == 0) break;
    Index of_input = slice(c_.widths[i]);
    op({net_.whole("", gradient), net_.whole("", weights_[i])}, of_input);
    if (i == 1 && c_.dropout) {
      const Index of_dropped = of_input;
      of_input = slice(c_.widths[i]);
      op({net_.whole("", of_dropped), rows(mask_)}, of_input);
    }
    gradient = slice(c_.widths[i]);
    op({net_.whole("", of_input), net_.whole("", activated[i - 1])}, gradient);
    if (c_.in_place) net_.in_place(of_input, gradient);
  }
}

}  // namespace

Graph classifier_in_parts(const Classifier& classifier, std::int64_t parts) {
  return Writer(classifier, parts).write();
}

}  // namespace lowtide
