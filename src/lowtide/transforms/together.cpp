#include "lowtide/transforms/together.h"

#include <algorithm>
#include <utility>

namespace lowtide {

std::vector<std::span<const Transform>> together(std::span<const Transform> transforms) {
  const auto substitutes = [](const Transform& one) {
    return std::holds_alternative<Substitute>(one);
  };
  std::vector<std::span<const Transform>> found;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= transforms.size(); ++i) {
    if (i < transforms.size() && substitutes(transforms[i - 1]) && substitutes(transforms[i]))
      continue;
    found.push_back(transforms.subspan(first, i - first));
    first = i;
  }
  return found;
}

std::string describe(std::span<const Transform> together) {
  if (!std::holds_alternative<Substitute>(together.front())) return describe(together.front());
  std::vector<std::pair<std::string, int>> rules;
  for (const Transform& one : together) {
    const std::string& name = std::get<Substitute>(one).rule;
    auto rule = std::ranges::find(rules, name, &std::pair<std::string, int>::first);
    if (rule == rules.end()) rule = rules.insert(rule, {name, 0});
    ++rule->second;
  }
  std::string text = "substitutions: ";
  for (const auto& [name, count] : rules)
    text += (&name == &rules.front().first ? "" : ", ") + std::to_string(count) + " by " + name;
  return text;
}

}  // namespace lowtide
