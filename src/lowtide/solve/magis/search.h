// Algorithm 3 of MAGIS. See search.cpp. Private to `magis`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/magis/build.h"
#include "lowtide/solve/magis/rules.h"

namespace lowtide::solve::magis {

class Search {
 public:
  Search(const Problem& problem, Context& context);

  // Offers plans to the context.
  void run();

 private:
  // The excess over the limit first, then the objective, then the other figure.
  struct Key {
    double over = 0, main = 0, other = 0;
    auto operator<=>(const Key&) const = default;
  };
  // Facts about one fission: its view, and the error of the estimates of its plans.
  struct Known {
    std::shared_ptr<const View> view;  // null: refused
    double peak = 1, time = 1;
    std::int64_t expanded = 0;
    std::set<std::tuple<Key, std::uint64_t>> waiting;
  };
  struct State {
    std::size_t fission = 0;
    Actions actions;
    Estimate estimate;
  };

  void begin();
  void choose_base();
  std::size_t fission_of(const rewrite::Fission& fission);
  std::unique_ptr<View> ordered(std::unique_ptr<View> view);
  Estimate estimate(const View& view, const Actions& actions, double target,
                    Evaluator::Hash hashed = Evaluator::Hash::none);

  Key key_of(double peak, double time) const;
  Key key_of(const State& state) const;
  bool is_kept(const State& state) const;
  void add(std::size_t fission, Actions actions, const Estimate& found);
  void file(std::uint64_t number, const State& state);
  std::optional<std::uint64_t> next();

  void expand(const State& state);
  void move_fission(const State& state);
  void schedule(const State& state);
  void roll_out(const State& state);
  bool step_down(const View& view, State& state, double target);
  void shed(const View& view, State& state, double target);
  void build(const State& state);
  bool is_settled() const;

  const Problem& problem_;
  Context& context_;
  Limits& limits_;
  bool least_memory_;
  double limit_;  // bytes or ticks
  double delta_;
  Prices prices_;  // used if plans may have transforms
  Base base_;
  rewrite::FissionTree tree_;
  std::optional<PartPricer> pricer_;
  std::optional<Views> views_;
  std::optional<Evaluator> evaluator_;
  std::optional<Rules> rules_;
  std::optional<Builder> builder_;
  std::vector<OpId> order_;

  std::map<rewrite::Fission, std::size_t> fission_ids_;
  std::vector<Known> known_;
  std::map<std::uint64_t, State> states_;  // waiting, by their number
  std::set<std::tuple<Key, std::uint64_t>> queue_;
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t next_number_ = 0;
  std::optional<Key> best_;   // of all states
  std::optional<Key> built_;  // of the best plan
  Ticks least_;               // of its graph, all ops once
  std::int64_t candidates_ = 0, expanded_ = 0, made_ = 0, since_better_ = 0;
};

}  // namespace lowtide::solve::magis
