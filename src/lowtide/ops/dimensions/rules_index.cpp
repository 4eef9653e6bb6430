// Kinds that choose, place, join or repeat elements along some dimension.
#include <algorithm>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

void embedding(const OpView& op, Rule& rule) {
  const Item weight = op.operand("weight"), indices = op.operand("indices");
  for (std::int64_t d = 0; d < op.rank(indices); ++d)
    Draft(op).in(indices, d).out(0, d).add_to(rule);
  Draft(op).in(weight, 1).out(0, -1).add_to(rule);
}

void embedding_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_output"), indices = op.operand("indices");
  if (op.rank(gradient) != op.rank(indices) + 1) return;
  // Scaled by how often an index comes, which a part does not know.
  if (op.is_false("scale_grad_by_freq"))
    for (std::int64_t d = 0; d < op.rank(indices); ++d)
      Draft(op).in(gradient, d).in(indices, d).others(Unnamed::sum).add_to(rule);
  Draft(op).in(gradient, -1).out(0, 1).add_to(rule);
}

std::vector<Item> members(const OpView& op, std::string_view argument) {
  std::vector<Item> list;
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    if (op.op().operands[i].argument == argument) list.emplace_back(i);
  return list;
}

void linear_together(const OpView& op, Rule& rule) {
  std::vector<std::size_t> all(op.operand_count());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (!all.empty()) rule.linear.push_back(std::move(all));
}

// Also along the dimension of joining: slices inside it that every operand holds in whole rounds
// stay such slices.
void cat(const OpView& op, Rule& rule) {
  const auto rank = std::ssize(op.extents_made(0));
  const auto dim = wrapped(op.integer("dim").value_or(0), rank);
  const auto tensors = members(op, "tensors");
  if (!dim || tensors.size() != op.operand_count()) return;
  for (std::int64_t d = 0; d < rank; ++d) {
    Draft draft(op);
    if (d == *dim) draft.joined();
    for (const Item tensor : tensors)
      if (op.extents(tensor) != Extents{0}) draft.in(tensor, d);
    draft.out(0, d).add_to(rule);
  }
  linear_together(op, rule);
}

void stack(const OpView& op, Rule& rule) {
  const auto rank = std::ssize(op.extents_made(0));
  const auto dim = wrapped(op.integer("dim").value_or(0), rank);
  const auto tensors = members(op, "tensors");
  if (!dim || tensors.size() != op.operand_count()) return;
  for (std::int64_t d = 0; d + 1 < rank; ++d) {
    Draft draft(op);
    for (const Item tensor : tensors) draft.in(tensor, d);
    draft.out(0, d < *dim ? d : d + 1).add_to(rule);
  }
  linear_together(op, rule);
}

// The dimension that "dim" names; nothing without it.
std::optional<std::int64_t> dim_of(const OpView& op, std::int64_t rank) {
  const auto dim = op.integer("dim");
  return dim ? wrapped(*dim, rank) : std::nullopt;
}

void index_select(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), index = op.operand("index");
  const auto dim = dim_of(op, op.rank(self));
  if (!dim) return;
  for (std::int64_t d = 0; d < op.rank(self); ++d)
    if (d != *dim) Draft(op).in(self, d).out(0, d).add_to(rule);
  Draft(op).in(index, 0).out(0, *dim).add_to(rule);
}

void gather(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), index = op.operand("index");
  const auto dim = dim_of(op, op.rank(self));
  if (!dim) return;
  for (std::int64_t d = 0; d < op.rank(self); ++d)
    if (d != *dim) Draft(op).in(self, d).in(index, d).out(0, d).add_to(rule);
  Draft(op).in(index, *dim).out(0, *dim).add_to(rule);
}

// Each place of the index, all but along "dim": self, index and what is put there go together.
void scatter(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), index = op.operand("index"), source = op.operand("src");
  const auto dim = dim_of(op, op.rank(self));
  if (!dim || (op.has("value") && op.rank(op.operand("value")) != 0)) return;
  for (std::int64_t d = 0; d < op.rank(self); ++d)
    if (d != *dim) Draft(op).in(self, d).in(index, d).in_any(source, d).out(0, d).add_to(rule);
}

// Whole rows, of which a vector says where they go.
void index_add(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), source = op.operand("source");
  const auto dim = dim_of(op, op.rank(self));
  if (!dim || (op.has("value") && op.rank(op.operand("value")) != 0)) return;
  for (std::int64_t d = 0; d < op.rank(self); ++d)
    if (d != *dim) Draft(op).in(self, d).in_any(source, d).out(0, d).add_to(rule);
}

// The positions of self's dimensions and of the indices' dimensions, broadcast to `broadcast`, in
// the result of advanced indexing.
struct Indexed {
  std::vector<bool> by_index;  // of each dimension of self
  std::int64_t first = 0;      // of the indices' dimensions in the result
  std::int64_t rank = 0;       // of these
};

std::optional<Indexed> indexed(const OpView& op, std::int64_t rank) {
  Indexed what;
  what.by_index.assign(static_cast<std::size_t>(rank), false);
  std::int64_t first = -1, last = -1, count = 0;
  for (const Item item : members(op, "indices")) {
    const std::int64_t at = op.op().operands[*item].index;
    const std::string_view dtype = op.dtype(*item);
    // A mask decides how many elements there are.
    if (at < 0 || at >= rank || (dtype != "i64" && dtype != "i32")) return std::nullopt;
    what.by_index[static_cast<std::size_t>(at)] = true;
    first = first < 0 ? at : std::min(first, at);
    last = std::max(last, at);
    ++count;
    what.rank = std::max(what.rank, op.rank(item));
  }
  if (count == 0) return std::nullopt;
  // Indices that do not stand side by side bring their dimensions to the front.
  what.first = last - first + 1 == count ? first : 0;
  return what;
}

// self[indices]: what is not indexed goes through; what the indices name is taken whole of self.
template <class Named>
void indexed_letters(const Indexed& what, std::int64_t rank, Named named) {
  std::int64_t before = 0;  // dimensions that are not indexed
  for (std::int64_t d = 0; d < rank; ++d) {
    if (what.by_index[static_cast<std::size_t>(d)]) continue;
    named(d, before < what.first ? before : before + what.rank);
    ++before;
  }
}

void index(const OpView& op, Rule& rule) {
  const Item self = op.operand("self");
  const auto what = indexed(op, op.rank(self));
  if (!what) return;
  indexed_letters(*what, op.rank(self), [&](std::int64_t d, std::int64_t at) {
    Draft(op).in(self, d).out(0, at).add_to(rule);
  });
  for (std::int64_t d = 0; d < what->rank; ++d) {
    Draft draft(op);
    for (const Item item : members(op, "indices")) draft.in_broadcast(item, d, what->rank);
    draft.out(0, what->first + d).add_to(rule);
  }
}

// The values have the dimensions that self[indices] would have.
void index_put(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), values = op.operand("values");
  const auto what = indexed(op, op.rank(self));
  if (!what) return;
  std::int64_t count = what->rank;
  for (const bool by_index : what->by_index) count += by_index ? 0 : 1;
  indexed_letters(*what, op.rank(self), [&](std::int64_t d, std::int64_t at) {
    Draft(op).in(self, d).in_broadcast(values, at, count).out(0, d).add_to(rule);
  });
}

// What a view's backward puts into zeros. The dimension that the view changed stays whole, but for
// a crop's: there the zeros stand behind.
void slice_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_output");
  const auto dim = dim_of(op, op.rank(gradient));
  if (!dim) return;
  const bool from_first = op.integer("start") == 0 && op.integer("step") == 1;
  for (std::int64_t d = 0; d < op.rank(gradient); ++d) {
    if (d != *dim)
      Draft(op).in(gradient, d).out(0, d).add_to(rule);
    else if (from_first)
      Draft(op).cropped().in(gradient, d).out(0, d).add_to(rule);
  }
  rule.linear.push_back({*gradient});
}

void select_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_output");
  const auto dim = dim_of(op, op.rank(gradient) + 1);
  if (!dim || !gradient) return;
  for (std::int64_t d = 0; d < op.rank(gradient); ++d)
    Draft(op).in(gradient, d).out(0, d < *dim ? d : d + 1).add_to(rule);
  rule.linear.push_back({*gradient});
}

void unfold_backward(const OpView& op, Rule& rule) {
  const Item gradient = op.operand("grad_in");
  const auto rank = std::ssize(op.extents_made(0));
  const auto dim = dim_of(op, rank);
  if (!dim || op.rank(gradient) != rank + 1) return;
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != *dim) Draft(op).in(gradient, d).out(0, d).add_to(rule);
}

void slice_scatter(const OpView& op, Rule& rule) {
  const auto dim = dim_of(op, op.rank(op.operand("self")));
  if (!dim) return;
  same_dimensions(op, rule, [&](std::int64_t d, std::int64_t) { return d != *dim; });
}

void select_scatter(const OpView& op, Rule& rule) {
  const Item self = op.operand("self"), source = op.operand("src");
  const auto dim = dim_of(op, op.rank(self));
  if (!dim) return;
  for (std::int64_t d = 0; d < op.rank(self); ++d)
    if (d != *dim) Draft(op).in(self, d).in(source, d < *dim ? d : d - 1).out(0, d).add_to(rule);
}

// Pairs of what is put before and behind, from the last dimension on.
void constant_pad(const OpView& op, Rule& rule) {
  const auto pad = op.integers("pad");
  if (!pad) return;
  same_dimensions(op, rule, [&](std::int64_t d, std::int64_t rank) {
    const std::int64_t at = 2 * (rank - 1 - d);
    if (at + 1 >= std::ssize(*pad)) return true;
    return (*pad)[static_cast<std::size_t>(at)] == 0 &&
           (*pad)[static_cast<std::size_t>(at) + 1] == 0;
  });
}

// A dimension is as long as "repeats" says; slices of it hold whole copies.
void repeat(const OpView& op, Rule& rule) {
  const Item self = op.operand("self");
  const auto repeats = op.integers("repeats");
  const Extents& made = op.extents_made(0);
  if (!repeats || repeats->size() != made.size() || op.rank(self) > std::ssize(made)) return;
  const auto rank = std::ssize(made);
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t at = d - (rank - op.rank(self));
    const std::int64_t copied = at < 0 ? 1 : op.extents(self)[static_cast<std::size_t>(at)];
    if ((*repeats)[static_cast<std::size_t>(d)] != 1)
      Draft(op).out(0, d).block(std::max<std::int64_t>(copied, 1)).add_to(rule);
    else if (at >= 0)
      Draft(op).in(self, at).out(0, d).add_to(rule);
  }
}

constexpr std::string_view kChooses = "chooses along";

constexpr Entry kIndexRules[] = {
    {"aten.embedding", embedding, kChooses},
    {"aten.embedding_dense_backward", embedding_backward, kChooses},
    {"aten.cat", cat, "joins along"},
    {"aten.stack", stack, {}},
    {"aten.index_select", index_select, kChooses},
    {"aten.gather", gather, kChooses},
    {"aten.scatter", scatter, kChooses},
    {"aten.scatter_add", scatter, kChooses},
    {"aten.scatter_reduce", scatter, kChooses},
    {"aten.index_add", index_add, kChooses},
    {"aten.index_copy", index_add, kChooses},
    {"aten.index_fill", index_add, kChooses},
    {"aten.index", index, kChooses},
    {"aten._unsafe_index", index, kChooses},
    {"aten.index_put", index_put, kChooses},
    {"aten._unsafe_index_put", index_put, kChooses},
    {"aten.slice_backward", slice_backward, {}},
    {"aten.select_backward", select_backward, {}},
    {"aten.unfold_backward", unfold_backward, {}},
    {"aten.slice_scatter", slice_scatter, {}},
    {"aten.select_scatter", select_scatter, {}},
    {"aten.constant_pad_nd", constant_pad, "pads"},
    {"aten.repeat", repeat, "repeats"},
};

}  // namespace

std::span<const Entry> index_rules() { return kIndexRules; }

}  // namespace lowtide::dimensions
