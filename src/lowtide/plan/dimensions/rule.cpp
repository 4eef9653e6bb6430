// The table is put together from a file for each family of kinds.
#include "lowtide/plan/dimensions/rule.h"

#include <algorithm>
#include <array>

#include "lowtide/base/error.h"
#include "lowtide/plan/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

const std::vector<Entry>& table() {
  static const std::vector<Entry> kTable = [] {
    std::vector<Entry> all;
    for (const auto part : {pointwise_rules(), matrix_rules(), reduction_rules(), layer_rules(),
                            attention_rules(), loss_rules(), index_rules()})
      all.insert(all.end(), part.begin(), part.end());
    std::ranges::sort(all, {}, &Entry::kind);
    check(std::ranges::adjacent_find(all, {}, &Entry::kind) == all.end(), "one rule for each kind");
    return all;
  }();
  return kTable;
}

}  // namespace

bool Letter::reduces() const {
  for (std::size_t r = 0; r < unnamed.size(); ++r)
    if (unnamed[r] == Unnamed::sum && std::ranges::find(results, r, &Along::item) == results.end())
      return true;
  return false;
}

Rule rule_for(const Op& op) {
  Rule rule;
  const auto found = std::ranges::lower_bound(table(), op.kind, {}, &Entry::kind);
  if (found == table().end() || found->kind != op.kind) return rule;
  rule.known = true;
  rule.reason = found->reason;
  found->fill(OpView(op), rule);
  return rule;
}

std::string_view to_string(Weight weight) {
  constexpr std::array<std::string_view, 3> kNames = {"one", "share", "total"};
  return kNames[static_cast<std::size_t>(weight)];
}

std::vector<std::string_view> known_kinds() {
  std::vector<std::string_view> kinds;
  for (const Entry& entry : table()) kinds.push_back(entry.kind);
  return kinds;
}

}  // namespace lowtide::dimensions
