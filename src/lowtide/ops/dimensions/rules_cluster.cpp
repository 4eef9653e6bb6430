// Clusters of ops that are one kernel: the front end that forms a cluster states its letters.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/ops/dimensions/op_view.h"

namespace lowtide::dimensions {

namespace {

constexpr char kNone = '.';  // a dimension without a letter

std::vector<std::string_view> divided(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// The letters of an op's operands or results; empty unless there is one for each dimension.
template <class ExtentsOf>
std::optional<std::vector<std::string_view>> letters_of(std::string_view text, std::size_t count,
                                                        ExtentsOf extents) {
  std::vector<std::string_view> parts;
  if (count > 0 || !text.empty()) parts = divided(text);
  if (parts.size() != count) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i)
    if (parts[i].size() != extents(i).size()) return std::nullopt;
  return parts;
}

// "ab,b->ab,a": in argument "letters", as in an einsum.  A result without a letter is a sum over
// it.
void cluster(const OpView& op, Rule& rule) {
  const auto text = op.text("letters");
  const auto arrow = text ? text->find("->") : std::string_view::npos;
  if (arrow == std::string_view::npos) return;
  const auto given = letters_of(text->substr(0, arrow), op.operand_count(),
                                [&](std::size_t i) -> const Extents& { return op.extents(i); });
  const auto made = letters_of(text->substr(arrow + 2), op.result_count(),
                               [&](std::size_t r) -> const Extents& { return op.extents_made(r); });
  if (!given || !made) return;
  std::string letters;
  for (const auto& parts : {*given, *made})
    for (const std::string_view part : parts)
      for (const char letter : part)
        if (letter != kNone && letters.find(letter) == std::string::npos) letters += letter;
  for (const char letter : letters) {
    Draft draft(op);
    for (std::size_t i = 0; i < given->size(); ++i)
      if (const auto dim = (*given)[i].find(letter); dim != std::string_view::npos)
        draft.in(i, static_cast<std::int64_t>(dim));
    for (std::size_t r = 0; r < made->size(); ++r)
      if (const auto dim = (*made)[r].find(letter); dim != std::string_view::npos)
        draft.out(r, static_cast<std::int64_t>(dim));
    draft.others(Unnamed::sum).add_to(rule);
  }
}

}  // namespace

std::span<const Entry> cluster_rules() {
  static constexpr Entry kEntries[] = {
      {"lowtide.cluster", cluster, "is one kernel that takes all of"}};
  return kEntries;
}

}  // namespace lowtide::dimensions
