// The page is report_page.html with the style, the scripts and the data put into it. The data are
// columns of integers and names, as report_page.js describes them; what the page says is made from
// them there, as text and never as markup. So names need care in two places: in the data, which
// stand as JSON inside of a script element, and in the title and the text for readers without
// scripts, which are HTML.
#include "lowtide/report/report_html.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lowtide/report/footprint_text.h"
#include "lowtide/report/json_writer.h"
#include "lowtide/report/page.h"
#include "lowtide/report/plot.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_page.h"
#include "lowtide/report/report_text.h"

namespace lowtide::report {

namespace {

constexpr std::size_t kSampledPoints = 12'000;  // of each run, where there are too many steps
constexpr std::size_t kSampledCopies = 3'000;   // of each lane there
constexpr std::ptrdiff_t kMostMoved = 400;      // tensors that are listed with their copies
constexpr std::size_t kMostNames = 4'000'000;   // bytes of them in a full page, origins included

// An op or tensor of one of the page's graphs: a plan with transforms runs on one of its own.
template <class AnyId>
struct Thing {
  const Graph* graph;
  AnyId id;
};

// The things that a page carries, each with its place there.
template <class AnyId>
class Selection {
 public:
  std::size_t place(const Graph& graph, AnyId id) {
    const auto [at, added] = places_[&graph].try_emplace(id.index(), things_.size());
    if (added) things_.push_back({&graph, id});
    return at->second;
  }
  const std::vector<Thing<AnyId>>& things() const { return things_; }

 private:
  std::unordered_map<const Graph*, std::unordered_map<std::size_t, std::size_t>> places_;
  std::vector<Thing<AnyId>> things_;
};

class PageData {
 public:
  PageData(const Graph& graph, const Report& report, std::size_t full_steps)
      : graph_(graph), report_(report), json_(out_) {
    std::size_t steps = 0, names = 0;
    runs_.push_back(&report.before);
    if (&report.shown() != &report.before) runs_.push_back(&report.shown());
    for (const Run* run : runs_) steps += run->timeline.live.size();
    const auto add = [&](const std::string& name) {
      names += std::min(name.size(), JsonWriter::kLongestName);
    };
    for (const Graph* each : graphs()) {
      for (const OpId id : AllIds<OpId>(each->op_count())) {
        add(each->op(id).name);
        add(each->op(id).origin);
      }
      for (const TensorId id : AllIds<TensorId>(each->tensor_count())) add(each->tensor(id).name);
    }
    full_ = steps <= full_steps && names <= kMostNames;
    if (!full_) return;
    for (const Graph* each : graphs()) {
      for (const OpId id : AllIds<OpId>(each->op_count())) ops_.place(*each, id);
      for (const TensorId id : AllIds<TensorId>(each->tensor_count())) tensors_.place(*each, id);
    }
  }

  std::string write() {
    json_.object([&] {
      write_head();
      // Runs first: they say which ops and tensors a sampled page needs.
      json_.key("runs").array(runs_, [&](const Run* run) { write_run(*run); });
      write_recomputed("recomputed", report_.recomputed);
      write_recomputed("recomputedAlike", report_.recomputed_alike);
      write_tensors();
      write_ops();
    });
    return std::move(out_);
  }

 private:
  const Graph& graph_of(const Run& run) const { return run.graph(graph_); }
  std::vector<const Graph*> graphs() const {
    std::vector<const Graph*> all{&graph_};
    for (const Run* run : runs_)
      if (run->transformed) all.push_back(&run->transformed->graph);
    return all;
  }
  template <class Value>
  void optional(std::string_view key, const std::optional<Value>& value) {
    json_.key(key);
    value ? json_.number(*value) : json_.raw("null");
  }
  void write_head();
  void write_run(const Run& run);
  void write_lanes(const Run& run);
  void write_sent(const Run& run);
  void write_copies(std::string_view key, const Run& run, bool out);
  void write_stretches(const Run& run, std::size_t points);
  void write_moved(const Moved& moved, std::int64_t tensor);
  // 5 x place + kind.
  std::int64_t code_of(const Run& run, std::size_t at) {
    const Step& step = run.plan.steps[at];
    const Graph& graph = graph_of(run);
    const std::size_t place =
        step.is_compute() ? ops_.place(graph, step.op()) : tensors_.place(graph, step.tensor());
    return static_cast<std::int64_t>(kStepKinds.size() * place +
                                     static_cast<std::size_t>(step.kind));
  }
  void write_points(const Run& run);
  void write_recomputed(std::string_view key, const std::vector<Recomputed>& groups);
  void write_tensors();
  void write_ops();

  const Graph& graph_;
  const Report& report_;
  bool full_ = false;
  std::vector<const Run*> runs_;
  Selection<OpId> ops_;
  Selection<TensorId> tensors_;
  std::string out_;
  JsonWriter json_;
};

void PageData::write_head() {
  json_.key("name").text(report_.name);
  json_.key("notice").text(report_.notice);
  json_.key("tick").text(to_string(report_.tick));
  json_.key("full").raw(full_ ? "true" : "false");
  json_.key("opCount").number(report_.ops);
  json_.key("tensorCount").number(report_.tensors);
  json_.key("resident").number(report_.resident);
  json_.key("inputs").number(report_.input_bytes);
  json_.key("base").number(report_.base_duration);
  optional("budget", report_.budget);
  optional("bound", report_.bound);
  if (const auto& counted = report_.counted) {
    json_.key("footprint").text(to_string(counted->footprint));
    json_.key("taken").number(counted->bytes);
  }
  if (const auto& device = report_.device) {
    json_.key("reserved").object([&] {
      json_.key("bytes").number(device->replay.peaks.reserved);
      json_.key("text").text(reserved_text(*device));
      json_.key("help").text(help_text(*device));
    });
  }
  json_.key("parts").array(report_.parts, [&](const PortfolioPart& part) {
    json_.object([&] {
      json_.key("name").text(part.name);
      json_.key("seconds").raw(fmt::format("{:.3f}", part.seconds));
      json_.key("work").number(part.work);
      json_.key("plans").number(part.plans);
      json_.key("won").number(part.won);
      json_.key("bound").number(part.bound);
    });
  });
  json_.key("recomputedBy").text(report_.recomputed_by);
  if (report_.transforms.empty()) return;
  json_.key("transforms").array(report_.transforms, [&](const Applied& applied) {
    json_.object([&] {
      json_.key("what").text(applied.what);
      json_.key("ops").number(applied.ops);
      json_.key("first").number(applied.first);
      json_.key("last").number(applied.last);
      json_.key("peak").number(applied.peak);
    });
  });
}

void PageData::write_run(const Run& run) {
  const Timeline& timeline = run.timeline;
  json_.object([&] {
    json_.key("label").text(&run == &report_.before ? "unplanned" : "plan");
    json_.key("peak").number(timeline.cost.peak);
    json_.key("peakStep").number(run.peak_step);
    json_.key("start").number(timeline.start);
    json_.key("duration").number(timeline.cost.duration);
    json_.key("hostPeak").number(timeline.cost.host_peak);
    json_.key("overhead").raw(fmt::format("{:.6f}", run.overhead_percent));
    json_.key("steps").number(timeline.live.size());
    json_.key("computations").number(run.computations);
    json_.key("recomputations").number(run.recomputed_steps.size());
    json_.key("recomputedTime").number(run.recomputed_time);
    json_.key("inPlace").number(run.in_place);
    json_.key("transfers").number(run.transfers);
    json_.key("workspace").number(run.workspace);
    json_.key("largest").array(run.largest, [&](const LiveTensor& tensor) {
      json_.number(tensors_.place(graph_of(run), tensor.id));
    });
    json_.key("roles").array(run.by_role, [&](const RoleBytes& role) {
      json_.tuple([&] {
        json_.number(static_cast<std::int64_t>(role.role));
        json_.number(role.bytes);
        json_.number(role.tensors);
      });
    });
    write_points(run);
    if (!run.lanes.empty()) json_.key("lanes").object([&] { write_lanes(run); });
  });
}

void PageData::write_lanes(const Run& run) {
  const Lanes& lanes = run.lanes;
  json_.key("bytesOut").number(lanes.out);
  json_.key("bytesIn").number(lanes.in);
  json_.key("copying").number(lanes.copying);
  json_.key("hidden").number(lanes.hidden);
  json_.key("stalled").number(lanes.stalled);
  write_copies("out", run, true);
  write_copies("in", run, false);
  if (!lanes.sent.empty()) write_sent(run);

  // The longest, where there are too many.
  std::vector<Stall> stalls = lanes.stalls;
  if (!full_ && stalls.size() > kSampledCopies) {
    const auto length = [](const Stall& stall) { return stall.end - stall.begin; };
    std::ranges::nth_element(stalls, stalls.begin() + kSampledCopies, std::greater(), length);
    stalls.resize(kSampledCopies);
    std::ranges::sort(stalls, {}, &Stall::begin);
  }
  json_.key("stalls").object([&] {
    const auto column = [&](std::string_view key, auto value_of) {
      json_.key(key).array(stalls, [&](const Stall& stall) { json_.number(value_of(stall)); });
    };
    column("what", [&](const Stall& stall) {
      return stall.step < run.timeline.live.size() ? code_of(run, stall.step) : -1;
    });
    column("begin", [](const Stall& stall) { return stall.begin; });
    column("end", [](const Stall& stall) { return stall.end; });
  });

  Moved rest;
  json_.key("moved").array(lanes.moved, [&](const Moved& moved) {
    if (&moved - lanes.moved.data() >= kMostMoved)
      add_up(rest, moved);
    else
      write_moved(moved, static_cast<std::int64_t>(tensors_.place(graph_of(run), moved.tensor)));
  });
  json_.key("rest").array(std::span(&rest, rest.bytes > Bytes(0) ? 1 : 0),
                          [&](const Moved& moved) { write_moved(moved, -1); });
}

// The computations on the network lane; the longest, where there are too many.
void PageData::write_sent(const Run& run) {
  std::vector<Sent> sent = run.lanes.sent;
  if (!full_ && sent.size() > kSampledCopies) {
    const auto length = [](const Sent& one) { return one.end - one.begin; };
    std::ranges::nth_element(sent, sent.begin() + kSampledCopies, std::greater(), length);
    sent.resize(kSampledCopies);
    std::ranges::sort(sent, {}, &Sent::begin);
  }
  json_.key("sending").number(run.lanes.sending);
  json_.key("sentHidden").number(run.lanes.sent_hidden);
  json_.key("network").object([&] {
    const auto column = [&](std::string_view key, auto value_of) {
      json_.key(key).array(sent, [&](const Sent& one) { json_.number(value_of(one)); });
    };
    column("what", [&](const Sent& one) { return code_of(run, one.step); });
    column("begin", [](const Sent& one) { return one.begin; });
    column("end", [](const Sent& one) { return one.end; });
    column("hidden", [](const Sent& one) { return one.hidden; });
  });
}

void PageData::write_moved(const Moved& moved, std::int64_t tensor) {
  json_.tuple([&] {
    json_.number(tensor);
    json_.number(moved.out);
    json_.number(moved.in);
    json_.number(moved.bytes);
    json_.number(moved.time);
    json_.number(moved.hidden);
  });
}

// The copies of one lane, in its order; where there are too many, several that follow one another
// are one: it stands for the largest of them.
void PageData::write_copies(std::string_view key, const Run& run, bool out) {
  const Graph& graph = graph_of(run);
  const Lanes& lanes = run.lanes;
  struct Group {
    Copy largest;
    Ticks begin, end;
    Moved sum;
    std::size_t count() const { return sum.out + sum.in; }
  };
  const auto all = static_cast<std::size_t>(std::ranges::count(lanes.copies, out, &Copy::out));
  const std::size_t each = full_ ? 1 : (all + kSampledCopies - 1) / kSampledCopies;
  std::vector<Group> groups;
  for (const Copy& copy : lanes.copies) {
    if (copy.out != out) continue;
    if (groups.empty() || groups.back().count() == each)
      groups.push_back({.largest = copy, .begin = copy.begin, .end = {}, .sum = {}});
    Group& group = groups.back();
    if (graph.bytes(copy.tensor) > graph.bytes(group.largest.tensor)) group.largest = copy;
    group.end = copy.end;
    add_up(group.sum, moved_by(graph, copy));
  }
  json_.key(key).object([&] {
    const auto column = [&](std::string_view name, auto value_of) {
      json_.key(name).array(groups, [&](const Group& group) { json_.number(value_of(group)); });
    };
    column("tensor",
           [&](const Group& group) { return tensors_.place(graph, group.largest.tensor); });
    column("begin", [](const Group& group) { return group.begin; });
    column("end", [](const Group& group) { return group.end; });
    column("copying", [](const Group& group) { return group.sum.time; });
    column("hidden", [](const Group& group) { return group.sum.hidden; });
    column("bytes", [](const Group& group) { return group.sum.bytes; });
    column("count", [](const Group& group) { return group.count(); });
  });
}

void PageData::write_points(const Run& run) {
  const std::vector<Bytes>& live = run.timeline.live;
  const std::vector<std::size_t> steps =
      sample_peaks(live, full_ ? live.size() : std::min(kSampledPoints, live.size()));
  // The compute lane's clock after each step, and how much of it went to what was not new.
  std::vector<Ticks> clock(live.size()), extra(live.size());
  std::string again(live.size(), '0');
  for (std::size_t step : run.recomputed_steps) again[step] = '1';
  const auto base_of = [&, all = graph_of(run).total_time()](Ticks once) {
    if (!run.transformed || all == Ticks(0)) return once;
    return Ticks(
        checked_mul_div(once.count(), report_.base_duration.count(), all.count(), Rounding::floor));
  };
  Ticks now, fresh;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Step& step = run.plan.steps[i];
    const bool computes = step.is_compute() && on_compute_lane(graph_of(run), step);
    if (computes && again[i] == '0') fresh += graph_of(run).time(step.op());
    now = clock[i] = run.timeline.clock[i];
    extra[i] = now - base_of(fresh);
  }

  const auto column = [&](std::string_view key, auto value_of) {
    json_.key(key).array(steps, [&](std::size_t step) { json_.number(value_of(step)); });
  };
  if (!full_) column("at", [](std::size_t step) { return step; });
  column("what", [&](std::size_t i) { return code_of(run, i); });
  // Full pages only: the tensor that each step in place overwrites, by point.
  if (full_) {
    json_.key("over").object([&] {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto over = run.plan.overwritten(run.plan.steps[steps[i]]);
        if (over.empty()) continue;
        json_.key(std::to_string(i)).array(over, [&](TensorId id) {
          json_.number(tensors_.place(graph_of(run), id));
        });
      }
    });
  }
  column("live", [&](std::size_t step) { return live[step]; });
  column("extra", [&](std::size_t step) { return extra[step]; });
  // A point of a sampled run reaches to the end of its stretch, see sample_peaks.
  std::size_t point = 0;
  column("clock", [&](std::size_t) { return clock[++point * live.size() / steps.size() - 1]; });
  std::string marks;
  for (std::size_t step : steps) marks += again[step];
  json_.key("again").text("");
  out_.insert(out_.size() - 1, marks);
  if (!run.stretches.empty()) write_stretches(run, steps.size());
  if (!full_ || graphs().size() == 1) return;
  // Those of its own graph: the first place, and the place after the last.
  const std::size_t first = run.transformed ? graph_.tensor_count() : 0;
  json_.key("tensors").tuple([&] {
    json_.number(first);
    json_.number(first + graph_of(run).tensor_count());
  });
}

// Each as [transform, part, depth, first point, last point].
void PageData::write_stretches(const Run& run, std::size_t points) {
  const std::size_t all = run.timeline.live.size();
  const std::size_t most = full_ ? run.stretches.size() : kSampledCopies;
  json_.key("stretches").array(run.stretches, [&](const Stretch& stretch) {
    if (static_cast<std::size_t>(&stretch - run.stretches.data()) >= most) return;
    json_.tuple([&] {
      json_.number(stretch.transform);
      json_.number(std::int64_t{stretch.part});
      json_.number(stretch.depth);
      json_.number(stretch.first * points / all);
      json_.number(stretch.last * points / all);
    });
  });
}

void PageData::write_recomputed(std::string_view key, const std::vector<Recomputed>& groups) {
  json_.key(key).array(groups, [&](const Recomputed& group) {
    json_.tuple([&] {
      json_.text(group.what);
      json_.number(group.ops);
      json_.number(group.times);
      json_.number(group.time);
    });
  });
}

void PageData::write_tensors() {
  using Tensor = Thing<TensorId>;
  const auto maker = [&](const Tensor& tensor) -> std::int64_t {
    const OpId op = tensor.graph->producer(tensor.id);
    return op.valid() ? static_cast<std::int64_t>(ops_.place(*tensor.graph, op)) : -1;
  };
  const auto column = [&](std::string_view key, auto write) {
    json_.key(key).array(tensors_.things(), write);
  };
  json_.key("tensors").object([&] {
    column("name", [&](const Tensor& tensor) {
      const Graph& graph = *tensor.graph;
      const OpId op = graph.producer(tensor.id);
      const std::string& name = graph.tensor(tensor.id).name;
      if (op.valid() && !name.empty() && name == graph.op(op).name)
        json_.number(std::int64_t{0});
      else
        json_.text(name.empty() ? graph.label(tensor.id) : name);
    });
    column("bytes", [&](const Tensor& tensor) { json_.number(tensor.graph->bytes(tensor.id)); });
    column("role", [&](const Tensor& tensor) {
      json_.number(static_cast<std::int64_t>(role_of(*tensor.graph, tensor.id)));
    });
    column("maker", [&](const Tensor& tensor) { json_.number(maker(tensor)); });
  });
}

void PageData::write_ops() {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::string_view> origins;
  const auto column = [&](std::string_view key, auto write) {
    json_.key(key).array(ops_.things(), [&](const Thing<OpId>& op) { write(*op.graph, op.id); });
  };
  json_.key("ops").object([&] {
    column("name", [&](const Graph& graph, OpId id) {
      json_.text(graph.op(id).name.empty() ? graph.label(id) : graph.op(id).name);
    });
    column("workspace", [&](const Graph& graph, OpId id) { json_.number(graph.workspace(id)); });
    column("outputs", [&](const Graph& graph, OpId id) {
      const auto outputs = full_ ? graph.outputs(id) : std::span<const TensorId>();
      json_.array(outputs, [&](TensorId tensor) { json_.number(tensors_.place(graph, tensor)); });
    });
    column("origin", [&](const Graph& graph, OpId id) {
      const auto [at, added] = places.try_emplace(graph.op(id).origin, origins.size());
      if (added) origins.push_back(at->first);
      json_.number(at->second);
    });
  });
  json_.key("origins").array(origins, [&](std::string_view origin) { json_.text(origin); });
}

}  // namespace

std::string html_report(const Graph& graph, const Report& report, std::size_t full_steps) {
  const std::string name =
      report.name.empty() ? "Graph" : shorten(report.name, JsonWriter::kLongestName);
  return make_page({.title = name + ": memory in use",
                    .text = text_report(report, TerminalStyle{.width = 100}),
                    .main = kReportMain,
                    .style = {},
                    .data = PageData(graph, report, full_steps).write(),
                    .script = std::string(kReportScript) + std::string(kReportChart) +
                              std::string(kReportLanes)});
}

}  // namespace lowtide::report
