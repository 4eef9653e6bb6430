// What is asked in an epoch: of the search, in lanes, and of the bounds.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "lowtide/driver/portfolio.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

constexpr std::int64_t kBriefWork = 200;  // of a lane, for each op
// Of a lane while there is no plan, in mean op times.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kHot = {
    {{"hot", "10"}, {"cold", "0.1"}}};
// Of one lane in four that has the time to cool down: it keeps nothing of its start, and so comes
// to plans to which no lane comes that keeps most of the best.
constexpr double kAfresh = 1, kAfreshCold = 0.0005;
// Where a repeated computation costs that many op times more than is proven, the best plan is far
// from what can be, and hot lanes are hotter and more: what is won by one change is of the order of
// that.
constexpr double kFar = 0.1, kFarBrief = 0.3;
constexpr double kHotter = 8, kHotterBrief = 4;  // times that
constexpr double kHottest = 10;
constexpr double kCooling = 100, kCoolingBrief = 10;

// As options are read, whatever the locale.
std::string text_of(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace

Portfolio::Task Portfolio::part_task(const solve::Solver* part, std::int64_t work) const {
  return {.part = part,
          .work = work,
          .seed = context_.seed(),
          .from_before = best_elsewhere_.plan.has_value()};
}

// Each begins anew, and with less than twice the work would only find again what it has found.
void Portfolio::add_proof(std::vector<Task>& tasks, std::int64_t work) {
  if (proving_ == nullptr) return;
  work = std::min(work, context_.limits().remaining().work.value_or(work));
  if (work >= 2 * longest_proof_) tasks.push_back(proof_task(work));
}

Portfolio::Task Portfolio::proof_task(std::int64_t work) {
  longest_proof_ = work;
  return part_task(proving_, work);
}

// As many lanes as can be are whole in the last epoch too: short ones come to nothing, and a run
// with less work then has begun with what one with more does.
void Portfolio::share_out_what_is_left(std::vector<Task>& lanes) const {
  const auto left = context_.limits().remaining().work;
  if (!left) return;
  std::int64_t rest = std::max<std::int64_t>(1, *left);
  std::size_t count = 0;
  for (; count < lanes.size() && rest > 0; ++count) {
    lanes[count].work = std::min(lanes[count].work, rest);
    rest -= lanes[count].work;
  }
  lanes.resize(count);
}

int Portfolio::lane_count(int quarters) const {
  if (search_ == nullptr) return 0;
  return clocked_ ? threads_ : quarters;
}

// Lanes and epochs differ in their random numbers, in how hot they begin and, where the order is
// free, in what they make of it.
Portfolio::Task Portfolio::lane_task(std::uint64_t number, int lane, std::int64_t slice) const {
  const auto place = static_cast<std::uint64_t>(lane);
  const std::uint64_t index = number * 1024 + place;
  const std::uint64_t turn = number + place;
  const bool brief = slice < kBriefWork * ops_;
  Task task{.part = search_,
            .work = slice,
            .seed = task_seed(index),
            .endless = true,
            .from_before = best_elsewhere_.plan && turn % 2 == 0,
            .options = search_options(turn, brief, problem_.machine.has_value())};
  task.options.emplace_back("near", (number / 2 + place / 2) % 2 == 0 ? "on" : "off");
  if (problem_.order == Order::free) choose_orders(task, number, place);
  if (problem_.machine && !best_transfers() && turn % 2 == 0) {
    task.from_swapped = true;
    task.from_before = false;
  }
  if (!problem_.machine) choose_heat(task, number, place, brief);
  // Where several changes help together and none of them alone, cold lanes stay where they are.
  if (!context_.has_plan() && number > 0 && turn % 4 == 1)
    for (const auto& [name, value] : kHot) task.options.emplace_back(name, value);
  return task;
}

// Where the best plan is far from what is proven every other lane is hot, and three of four once
// that has won more. Which ones goes neither with where lanes begin nor with what they make of the
// order, which hang on whether the turn is even.
void Portfolio::choose_heat(Task& task, std::uint64_t number, std::uint64_t place,
                            bool brief) const {
  const std::uint64_t turn = number + place;
  const bool far = excess_ >= (brief ? kFarBrief : kFar);
  const bool odd = turn % 2 == 1, other = (turn + number / 2 + place / 2) % 2 == 1;
  task.hot = !far ? !brief && turn % 4 == 3 : won_[1] > won_[0] ? other || !odd : other;
  if (!task.hot) return;
  const double hot = far ? std::min(kHottest, (brief ? kHotterBrief : kHotter) * excess_) : kAfresh;
  const double cold = far ? hot / (brief ? kCoolingBrief : kCooling) : kAfreshCold;
  task.options.emplace_back("hot", text_of(hot));
  task.options.emplace_back("cold", text_of(cold));
  task.options.emplace_back("rounds", "1");
}

double Portfolio::excess_of_repeats() const {
  if (problem_.machine || !context_.has_plan()) return 0;
  const auto repeats = static_cast<std::int64_t>(computations(context_.best()).size()) - ops_;
  const Ticks time = problem_.graph.total_time();
  if (repeats <= 0 || time == Ticks(0)) return 0;
  const Ticks excess = context_.best_cost().duration - context_.bound().duration;
  return static_cast<double>(excess.count()) / static_cast<double>(time.count()) *
         static_cast<double>(ops_) / static_cast<double>(repeats);
}

// Of lanes that begin from the best plan: others have to come to it first.
void Portfolio::count_won(const Task& task) {
  if (task.part != search_ || task.from_before || before_lanes_ == Ticks::max()) return;
  const Ticks made = task.outcome->plan ? task.outcome->cost.duration : before_lanes_;
  Ticks& most = won_now_[task.hot ? 1 : 0];
  most = std::max({most, Ticks(0), before_lanes_ - made});
}

// Lanes that keep the order that they find would repeat what a portfolio in the given order does,
// until another order has come to be better: then every other one goes on in that. Of the lanes
// that look for another one some anneal the order alone at first.
void Portfolio::choose_orders(Task& task, std::uint64_t number, std::uint64_t place) const {
  const std::uint64_t turn = number + place;
  const bool tight = best_elsewhere_.plan.has_value(), alone = lead() == Lead::none;
  task.from_before = tight && turn % 4 < 2;
  const bool keeps = !alone && turn % 2 == 0 && !task.from_before;
  const bool reorders = !keeps && (alone ? number % 2 == 1 : (number / 2 + place / 2) % 2 == 0);
  task.options.emplace_back("orders", keeps ? "off" : "on");
  task.options.emplace_back("reorder", reorders ? "0.3" : "0");
}

std::vector<std::pair<std::string, std::string>> search_options(std::uint64_t turn, bool brief,
                                                                bool swaps) {
  // In mean op times, at the beginning and at the end.
  using Heat = std::array<std::string_view, 2>;
  constexpr std::array<Heat, 4> kHeat = {
      {{"0.03", "0.0005"}, {"0.2", "0.003"}, {"0.01", "0.0002"}, {"0.08", "0.001"}}};
  constexpr std::array<Heat, 2> kBriefHeat = {{{"0.01", "0.0002"}, {"0.003", "0.0001"}}};
  constexpr std::array<Heat, 2> kSwapHeat = {{{"0.1", "0.0005"}, {"0.3", "0.001"}}};
  const Heat& heat = swaps   ? kSwapHeat[turn % kSwapHeat.size()]
                     : brief ? kBriefHeat[turn % kBriefHeat.size()]
                             : kHeat[turn % kHeat.size()];
  return {{"rounds", "2"},
          {"hot", std::string(heat[0])},
          {"cold", std::string(heat[1])},
          {"reorder", turn % 2 == 1 ? "0.3" : "0"}};
}

}  // namespace lowtide::driver
