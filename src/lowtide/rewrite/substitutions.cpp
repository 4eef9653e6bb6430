// Anchors by kind, so that an op is tried with the rules for its kind only.
#include "lowtide/rewrite/substitutions.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lowtide/rewrite/profile.h"
#include "lowtide/transforms/if_legal.h"
#include "lowtide/transforms/substitution.h"

namespace lowtide::rewrite {

namespace {

using ByKind = std::unordered_map<std::string_view, std::vector<const Rule*>>;

ByKind rules_by_kind() {
  ByKind found;
  for (const Rule* rule : substitution_rules())
    for (const std::string_view kind : rule->anchors) found[kind].push_back(rule);
  return found;
}

PartPricer::Cost cost_of(const Replacement::Made& made, const PartPricer& pricer) {
  const Call call = call_of(made.op);
  if (made.like.valid()) return pricer.part(made.like, call);
  return pricer.copy(moved_bytes(call));
}

// Throws TransformRefused or another InputError if that is impossible.
Proposed proposed(const Rule& rule, const std::vector<OpId>& ops, const TransformedGraph& now,
                  const Labels& labels, const PartPricer& pricer) {
  const Replacement made = replacement_by(rule, now.graph, ops, labels);
  Proposed found{.substitute = {}, .saved = Ticks(0)};
  found.substitute.rule = rule.name;
  found.substitute.exact = rule.exact;
  for (const OpId op : ops) found.substitute.ops.push_back(now.op_index[op]);
  for (const OpId op : made.gone) found.saved = checked_add(found.saved, now.graph.time(op));
  Ticks taken;
  for (std::size_t i = 0; i < made.ops.size(); ++i) {
    const PartPricer::Cost cost = cost_of(made.ops[i], pricer);
    found.substitute.prices.push_back({OpId(now.ops.size() + i), cost.time, cost.workspace});
    taken = checked_add(taken, cost.time);
  }
  found.saved -= taken;
  return found;
}

}  // namespace

std::vector<Proposed> substitutions(const TransformedGraph& now, const PartPricer& pricer,
                                    const std::function<bool()>& stops) {
  const ByKind rules = rules_by_kind();
  const Labels labels = labels_of(now.graph);
  std::vector<Proposed> found;
  for (const OpId anchor : now.graph.order()) {
    const auto of_kind = rules.find(now.graph.op(anchor).kind);
    if (of_kind == rules.end()) continue;
    for (const Rule* rule : of_kind->second)
      for (const std::vector<OpId>& ops : rule->matches(now.graph, anchor)) {
        if (stops && stops()) return found;
        if (auto one = if_legal([&] { return proposed(*rule, ops, now, labels, pricer); }))
          found.push_back(std::move(*one));
      }
  }
  return found;
}

namespace {

// Those that do not conflict, the earlier ones first. Of two substitutions with a common op the
// second waits for the next round.
void put_together(const Graph& graph, std::vector<Proposed> chosen, Applied& made,
                  const std::function<bool()>& stops) {
  std::set<OpId> seen;
  std::erase_if(chosen, [&](const Proposed& one) {
    const auto& ops = one.substitute.ops;
    if (std::ranges::any_of(ops, [&](OpId op) { return seen.contains(op); })) return true;
    seen.insert(ops.begin(), ops.end());
    return false;
  });
  if (chosen.empty() || (stops && stops())) return;
  std::vector<Substitute> more;
  more.reserve(chosen.size());
  for (Proposed& one : chosen) more.push_back(std::move(one.substitute));
  made = apply_those_that_hold(graph, made, std::move(more), stops);
}

// The live bytes, averaged over the positions of the given order.
double held(const Graph& graph) {
  const Profile profile = profile_of(graph);
  double sum = 0;
  for (const Bytes bytes : profile.live) sum += static_cast<double>(bytes.count());
  return sum / static_cast<double>(std::max<std::size_t>(1, profile.live.size()));
}

// Those for which, applied alone, `less` accepts the bytes before and after.
template <class Less>
std::vector<Proposed> those_that_leave(const Graph& graph, const std::vector<Proposed>& all,
                                       const Applied& made, Less less,
                                       const std::function<bool()>& stops) {
  const double before = held(made.now.graph);
  std::vector<Proposed> chosen;
  for (const Proposed& one : all) {
    if (stops && stops()) break;
    const Applied with = apply_those_that_hold(graph, made, {one.substitute}, stops);
    if (less(held(with.now.graph), before)) chosen.push_back(one);
  }
  return chosen;
}

}  // namespace

Applied substituted(const Graph& graph, Applied given, const Device& device, const CostTable* costs,
                    Taken taken, const std::function<bool()>& stops) {
  constexpr int kMostRounds = 4;
  Applied made = std::move(given);
  for (int round = 0; round < kMostRounds; ++round) {
    const std::size_t before = made.transforms.size();
    std::vector<Proposed> found =
        substitutions(made.now, PartPricer(made.now.graph, device, costs), stops);
    std::vector<Proposed> faster, free;
    for (Proposed& one : found) {
      if (one.saved > Ticks(0))
        faster.push_back(std::move(one));
      else if (one.saved == Ticks(0) && one.substitute.prices.empty())
        free.push_back(std::move(one));
    }
    std::ranges::stable_sort(faster, std::greater<>{}, &Proposed::saved);
    if (taken == Taken::faster_and_lighter)
      faster = those_that_leave(graph, faster, made, std::less_equal<>{}, stops);
    put_together(graph, std::move(faster), made, stops);
    if (made.transforms.size() > before) continue;
    put_together(graph, those_that_leave(graph, free, made, std::less<>{}, stops), made, stops);
    break;
  }
  return made;
}

}  // namespace lowtide::rewrite
