// Problem: after a small change, find an order of the tasks with little memory, without examining
// all of them.
//
// Idea: a task that is comparable with nearly all others (a narrow waist) divides the order: tasks
// before it hardly overlap with tasks after it. So only the stretch around the change is examined,
// from one waist to another. Its components follow one another, each divided at its own waists,
// and each block is solved by a dynamic program over its sets of computed tasks.
//
// Source: MAGIS (ASPLOS 2024), Algorithm 2, whose listing has constants of 20, 10 and 4: here an
// end of the stretch examines 20 places beyond the change, skips the first 10 and takes the first
// waist of at most 4, else the narrowest. Blocks are divided at waists of at most 1, component by
// component, if those between waists of 0 are too large; the paper always does so.
//
// Invariant: blocks are runs of a topological order, so any orders of theirs form one. A new order
// is kept only if its peak is not higher.
//
// Loses: wide blocks, for which the program gives up. Then the repair, which tries places one task
// at a time, still finds improvements, unless two tasks must move together.
#include "lowtide/solve/magis/schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace lowtide::solve::magis {

namespace {

constexpr std::size_t kReach = 20, kAside = 10, kNarrow = 4, kDivides = 1;
constexpr std::size_t kMostOfBlock = 64;

// The least peak of a block, over the sets of computed tasks (best first, as in the `order` solver:
// the maximum replaces the sum in Dijkstra's algorithm).
class Block {
 public:
  // The block has at most kMostOfBlock tasks: a set of them is one word.
  Block(const Tasks& tasks, std::span<const Task> block, Effort& effort)
      : tasks_(tasks), block_(block), effort_(effort) {
    std::unordered_map<Task, std::size_t> local;
    for (std::size_t i = 0; i < block.size(); ++i) local[block[i]] = i;
    before_.resize(block.size());
    std::unordered_map<std::uint32_t, std::size_t> known;
    const auto touch = [&](std::uint32_t item) {
      const auto [at, fresh] = known.try_emplace(item, touched_.size());
      if (fresh) touched_.emplace_back().bytes = tasks_.items[item].bytes;
      return at->second;
    };
    for (std::size_t i = 0; i < block.size(); ++i) {
      for (const Task task : tasks_.before[block[i]])
        if (const auto at = local.find(task); at != local.end()) before_[i] |= bit(at->second);
      for (const std::uint32_t item : tasks_.reads[block[i]]) touch(item);
      for (const std::uint32_t item : tasks_.makes[block[i]]) touch(item);
    }
    for (const auto& [item, at] : known) {
      Touched& touched = touched_[at];
      touched.stays = tasks_.items[item].stays;
      for (const Task reader : tasks_.items[item].readers) {
        const auto found = local.find(reader);
        if (found != local.end())
          touched.readers |= bit(found->second);
        else
          touched.outside.push_back(reader);
      }
      const std::int32_t maker = tasks_.items[item].maker;
      if (const auto found = maker < 0 ? local.end() : local.find(static_cast<Task>(maker));
          found != local.end())
        touched.maker = bit(found->second);
    }
  }

  // `done`: tasks outside the block that have run before it.
  std::vector<Task> least_peak(const std::vector<std::uint8_t>& done) {
    for (Touched& one : touched_)
      one.needed =
          one.stays || std::ranges::any_of(one.outside, [&](Task task) { return done[task] == 0; });
    struct Node {
      std::int64_t peak;
      int count;
      std::uint64_t set;
      bool operator>(const Node& other) const {
        return std::tuple(peak, other.count, set) > std::tuple(other.peak, count, other.set);
      }
    };
    struct Reached {
      std::int64_t peak;
      std::uint8_t last;
      bool taken = false;
    };
    const std::uint64_t all = block_.size() == 64 ? ~std::uint64_t{0} : bit(block_.size()) - 1;
    std::unordered_map<std::uint64_t, Reached> reached;
    std::priority_queue<Node, std::vector<Node>, std::greater<>> queue;
    reached[0] = {0, 0};
    queue.push({0, 0, 0});
    while (!queue.empty()) {
      const Node node = queue.top();
      queue.pop();
      Reached& here = reached[node.set];
      if (here.taken) continue;
      here.taken = true;
      if (node.set == all) break;
      const std::int64_t live = live_after(node.set);
      for (std::size_t i = 0; i < block_.size(); ++i) {
        if ((node.set & bit(i)) != 0 || (before_[i] & ~node.set) != 0) continue;
        if (effort_.spend(1)) return {};
        const std::int64_t peak = std::max(node.peak, live + made(i) + tasks_.workspace[block_[i]]);
        const auto [at, fresh] = reached.try_emplace(node.set | bit(i));
        if (!fresh && at->second.peak <= peak) continue;
        at->second = {peak, static_cast<std::uint8_t>(i)};
        queue.push({peak, node.count + 1, at->first});
        if (reached.size() > effort_.max_states) return {};
      }
    }
    std::vector<Task> order;
    for (std::uint64_t set = all; set != 0; set &= ~bit(reached[set].last))
      order.push_back(block_[reached[set].last]);
    std::ranges::reverse(order);
    return order;
  }

 private:
  struct Touched {
    std::int64_t bytes = 0;
    std::uint64_t readers = 0, maker = 0;  // in the block
    std::vector<Task> outside;             // other readers
    bool stays = false, needed = false;    // after the block
  };
  static std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << i; }

  // The change in bytes against the start of the block; may be negative.
  std::int64_t live_after(std::uint64_t set) const {
    std::int64_t live = 0;
    for (const Touched& one : touched_) {
      const bool there = one.maker == 0 || (one.maker & set) != 0;
      const bool gone = !one.needed && (one.readers & ~set) == 0;
      if (there && !gone) live += one.bytes;
    }
    return live;
  }
  std::int64_t made(std::size_t i) const {
    std::int64_t sum = 0;
    for (const std::uint32_t item : tasks_.makes[block_[i]]) sum += tasks_.items[item].bytes;
    return sum;
  }

  const Tasks& tasks_;
  std::span<const Task> block_;
  Effort& effort_;
  std::vector<std::uint64_t> before_;
  std::vector<Touched> touched_;
};

// The tasks of a stretch of the order by connected component, each in the order of the stretch.
std::vector<std::vector<Task>> components(const Tasks& tasks, std::span<const Task> run) {
  std::unordered_map<Task, std::size_t> local;
  for (std::size_t i = 0; i < run.size(); ++i) local[run[i]] = i;
  std::vector<std::size_t> above(run.size());
  std::iota(above.begin(), above.end(), std::size_t{0});
  const auto of = [&](std::size_t i) {
    while (above[i] != i) i = above[i] = above[above[i]];
    return i;
  };
  for (std::size_t i = 0; i < run.size(); ++i)
    for (const Task task : tasks.before[run[i]])
      if (const auto at = local.find(task); at != local.end()) {
        const std::size_t a = of(at->second), b = of(i);
        above[std::max(a, b)] = std::min(a, b);
      }
  std::vector<std::vector<Task>> found;
  std::unordered_map<std::size_t, std::size_t> number;
  for (std::size_t i = 0; i < run.size(); ++i) {
    const auto [at, fresh] = number.try_emplace(of(i), found.size());
    if (fresh) found.emplace_back();
    found[at->second].push_back(run[i]);
  }
  return found;
}

// Solves the places [first, last) of the order, block by block.
class Rescheduling {
 public:
  Rescheduling(const Tasks& tasks, std::span<const Task> order, Effort& effort)
      : tasks_(tasks), order_(order), effort_(effort), done_(tasks.size(), 0) {}

  std::vector<Task> run(OrderInterval at) {
    append(order_.first(at.first));
    const auto stretch = order_.subspan(at.first, at.last - at.first);
    if (!solve(stretch, 0))
      for (const auto& part : components(tasks_, stretch)) solve(part, kDivides);
    append(order_.subspan(at.last));
    effort_.spend(static_cast<std::int64_t>(2 * order_.size()));
    if (peak_of(tasks_, result_) > peak_of(tasks_, order_)) return {order_.begin(), order_.end()};
    return result_;
  }

 private:
  void append(std::span<const Task> tasks) {
    for (const Task task : tasks) done_[task] = 1;
    result_.insert(result_.end(), tasks.begin(), tasks.end());
  }

  // Divides at waists of at most this width. At width 0 that loses nothing; if some block is then
  // too large, nothing is changed and the result is false.
  bool solve(std::span<const Task> run, std::size_t divides) {
    if (effort_.spend(static_cast<std::int64_t>(run.size() * (1 + run.size() / 64)))) {
      append(run);
      return true;
    }
    const auto waists = narrow_waists(tasks_, run);
    const std::size_t begun = result_.size();
    for (std::size_t i = 0, begin = 0; i < run.size(); ++i) {
      if (waists[i] > divides && i + 1 < run.size()) continue;
      const auto block = run.subspan(begin, i + 1 - begin);
      begin = i + 1;
      effort_.spend(static_cast<std::int64_t>(block.size()));
      std::vector<Task> best;
      if (block.size() > 1 && block.size() <= kMostOfBlock)
        best = Block(tasks_, block, effort_).least_peak(done_);
      if (best.empty() && block.size() > 1 && divides == 0) {
        for (const Task task : run) done_[task] = 0;
        result_.resize(begun);
        return false;
      }
      append(best.empty() ? block : std::span<const Task>(best));
    }
    return true;
  }

  const Tasks& tasks_;
  std::span<const Task> order_;
  Effort& effort_;
  std::vector<std::uint8_t> done_;
  std::vector<Task> result_;
};

// For each place around the change: the number of other tasks of the stretch independent of it.
std::size_t waist(const std::vector<std::size_t>& waists, std::size_t from, std::size_t to) {
  const bool forward = from < to;
  std::size_t best = from, at = from;
  for (std::size_t step = 0; at != to && step < kReach; ++step) {
    at += forward ? 1 : std::size_t(-1);
    if (waists[at] < waists[best] || step + 1 == kAside) best = at;
    if (step >= kAside && waists[best] <= kNarrow) break;
  }
  return best;
}

// Moves one task at a time along the order.
class Repair {
 public:
  Repair(const Tasks& tasks, std::span<const Task> order, Effort& effort)
      : tasks_(tasks),
        effort_(effort),
        order_(order.begin(), order.end()),
        place_(tasks.size(), kNowhere),
        left_(tasks.items.size(), 0) {
    for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    live_ = live_of(tasks, order_);
    effort_.spend(static_cast<std::int64_t>(order_.size()));
  }

  const std::vector<Task>& order() const { return order_; }

  // These tasks and their neighbours in the graph, in order.
  std::vector<Task> beside(std::span<const Task> changed) const {
    std::vector<Task> found;
    for (const Task task : changed) {
      found.push_back(task);
      found.insert(found.end(), tasks_.before[task].begin(), tasks_.before[task].end());
      found.insert(found.end(), tasks_.after[task].begin(), tasks_.after[task].end());
    }
    std::erase_if(found, [&](Task task) { return place_[task] == kNowhere; });
    std::ranges::sort(found, {}, [&](Task task) { return place_[task]; });
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }

  // Moves to the place between its last predecessor and its first successor with the lowest peak;
  // among equal ones, with the lowest sum.
  void move(Task task) {
    const std::size_t at = place_[task];
    std::size_t low = at - std::min(at, kWindow), high = std::min(order_.size(), at + kWindow);
    for (const Task other : tasks_.before[task])
      if (place_[other] != kNowhere) low = std::max(low, place_[other] + 1);
    for (const Task other : tasks_.after[task])
      if (place_[other] != kNowhere) high = std::min(high, place_[other]);
    if (low + 1 >= high) return;
    std::vector<Task> trial(order_.begin() + offset(low), order_.begin() + offset(high)), best;
    auto least = measure(trial, low);
    const auto walk = [&](bool forward) {
      std::vector<Task> now = trial;
      for (std::size_t i = at - low; forward ? i + 1 < now.size() : i > 0;) {
        const std::size_t next = forward ? i + 1 : i - 1;
        std::swap(now[i], now[next]);
        i = next;
        if (const auto found = measure(now, low); found < least) {
          least = found;
          best = now;
        }
      }
    };
    walk(false);
    walk(true);
    if (best.empty()) return;
    std::ranges::copy(best, order_.begin() + offset(low));
    for (std::size_t i = low; i < high; ++i) place_[order_[i]] = i;
    run(best, low, [&](std::size_t i, std::int64_t live) { live_[low + i] = live; });
  }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX, kWindow = 64;
  static std::ptrdiff_t offset(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

  // The peak, and the sum in pieces that cannot overflow.
  std::pair<std::int64_t, double> measure(const std::vector<Task>& window, std::size_t low) {
    std::pair<std::int64_t, double> found{0, 0};
    run(window, low, [&](std::size_t, std::int64_t live) {
      found.first = std::max(found.first, live);
      found.second += static_cast<double>(live);
    });
    return found;
  }

  // Reorders the tasks of the stretch that begins at `low`.
  template <class Visit>
  void run(const std::vector<Task>& window, std::size_t low, Visit visit) {
    effort_.spend(static_cast<std::int64_t>(window.size()));
    for (const Task task : window) {
      for (const std::uint32_t item : tasks_.makes[task]) left_[item] = to_come(item, low);
      for (const std::uint32_t item : tasks_.reads[task]) left_[item] = to_come(item, low);
    }
    // Bytes live before the stretch, from the memory that its first task needs now.
    std::int64_t live = live_[low] - tasks_.workspace[order_[low]];
    for (const std::uint32_t item : tasks_.makes[order_[low]]) live -= tasks_.items[item].bytes;
    for (std::size_t i = 0; i < window.size(); ++i) {
      const Task task = window[i];
      for (const std::uint32_t item : tasks_.makes[task]) live += tasks_.items[item].bytes;
      visit(i, live + tasks_.workspace[task]);
      for (const std::uint32_t item : tasks_.makes[task])
        if (left_[item] == 0 && !tasks_.items[item].stays) live -= tasks_.items[item].bytes;
      for (const std::uint32_t item : tasks_.reads[task])
        if (--left_[item] == 0 && !tasks_.items[item].stays) live -= tasks_.items[item].bytes;
    }
  }
  // The readers of the item from this place on.
  std::size_t to_come(std::uint32_t item, std::size_t low) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        tasks_.items[item].readers,
        [&](Task reader) { return place_[reader] != kNowhere && place_[reader] >= low; }));
  }

  const Tasks& tasks_;
  Effort& effort_;
  std::vector<Task> order_;
  std::vector<std::size_t> place_, left_;
  std::vector<std::int64_t> live_;
};

}  // namespace

OrderInterval interval_around(const Tasks& tasks, std::span<const Task> order,
                              std::span<const Task> changed) {
  std::vector<std::uint8_t> is_changed(tasks.size(), 0);
  for (const Task task : changed) is_changed[task] = 1;
  OrderInterval at{order.size(), 0};
  for (std::size_t i = 0; i < order.size(); ++i)
    if (is_changed[order[i]] != 0) {
      at.first = std::min(at.first, i);
      at.last = i + 1;
    }
  if (at.first >= at.last) return {0, 0};
  // Uses the stretch instead of the graph: tasks further away are hardly independent.
  const std::size_t low = at.first - std::min(at.first, kReach);
  const std::size_t high = std::min(order.size(), at.last + kReach);
  const auto waists = narrow_waists(tasks, order.subspan(low, high - low));
  const std::size_t first = low + waist(waists, at.first - low, 0);
  const std::size_t last = low + waist(waists, at.last - 1 - low, high - 1 - low);
  return {first, last + 1};
}

std::vector<Task> full_schedule(const Tasks& tasks, std::span<const Task> order, Effort& effort) {
  return Rescheduling(tasks, order, effort).run({0, order.size()});
}

std::vector<Task> incremental_schedule(const Tasks& tasks, std::span<const Task> order,
                                       std::span<const Task> changed, Effort& effort) {
  const OrderInterval at = interval_around(tasks, order, changed);
  return Rescheduling(tasks, order, effort).run(at);
}

std::vector<Task> repaired_schedule(const Tasks& tasks, std::span<const Task> order,
                                    std::span<const Task> changed, Effort& effort) {
  Repair repair(tasks, order, effort);
  for (const Task task : repair.beside(changed)) {
    if (effort.limits != nullptr && effort.limits->stopped()) break;
    repair.move(task);
  }
  return repair.order();
}

}  // namespace lowtide::solve::magis
