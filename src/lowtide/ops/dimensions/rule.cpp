// The table is put together from a file for each family of kinds.
#include "lowtide/ops/dimensions/rule.h"

#include <algorithm>

#include "lowtide/base/error.h"
#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> all;
    for (const auto part : {pointwise_rules(), matrix_rules(), reduction_rules(), layer_rules(),
                            attention_rules(), loss_rules(), index_rules(), cluster_rules()})
      all.insert(all.end(), part.begin(), part.end());
    std::ranges::sort(all, {}, &Entry::kind);
    check(std::ranges::adjacent_find(all, {}, &Entry::kind) == all.end(), "one rule for each kind");
    return all;
  }();
  return entries;
}

}  // namespace

Rule rule_for(const Op& op) {
  Rule rule;
  const auto found = std::ranges::lower_bound(table(), op.kind, {}, &Entry::kind);
  if (found == table().end() || found->kind != op.kind) return rule;
  rule.known = true;
  rule.reason = found->reason;
  found->fill(OpView(op), rule);
  return rule;
}

std::vector<std::string_view> known_kinds() {
  std::vector<std::string_view> kinds;
  for (const Entry& entry : table()) kinds.push_back(entry.kind);
  return kinds;
}

}  // namespace lowtide::dimensions
