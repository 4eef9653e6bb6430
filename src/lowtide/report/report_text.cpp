// The parts of the report from the top down, each a function that leaves itself out if it has
// nothing to say.
#include "lowtide/report/report_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lowtide/report/footprint_text.h"
#include "lowtide/report/parts_text.h"
#include "lowtide/report/plot_line.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

constexpr std::size_t kRows = 10;  // of the long tables

std::string count_of(std::size_t count) { return count_text(static_cast<std::int64_t>(count)); }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string change(std::int64_t before, std::int64_t after) {
  if (before == 0 || before == after) return {};
  const double ratio = static_cast<double>(after) / static_cast<double>(before) - 1;
  return fmt::format("{:+.1f} %", 100 * ratio);
}

class Writer {
 public:
  Writer(const Report& report, const TerminalStyle& style)
      : report_(report), run_(report.shown()), style_(style) {
    style_.width = std::max<std::size_t>(style_.width, 40);
  }

  std::string write() {
    head();
    plot();
    figures();
    remarks();
    transforms();
    roles();
    tensors();
    copied();
    network();
    recomputed();
    blocks();
    parts();
    return std::move(out_);
  }

 private:
  bool has_plan() const { return &run_ != &report_.before; }
  // A line of its own, shortened to the width, or several.
  void line(std::string_view text, Ink ink = Ink::plain) {
    out_ += inked(shorten(text, style_.width, style_.unicode), ink, style_.colour) + '\n';
  }
  void lines(std::string_view text) { out_ += wrap(text, style_.width, style_.unicode); }
  void heading(std::string_view text) {
    out_ += '\n';
    line(text, Ink::strong);
  }

  void head();
  void plot();
  void plot_over_time();
  void figures();
  void remarks();
  void roles();
  void tensors();
  void recomputed();
  void copied();
  void network();
  void blocks();
  void parts();
  void transforms();

  const Report& report_;
  const Run& run_;
  TerminalStyle style_;
  std::string out_;
};

void Writer::head() {
  line(report_.name.empty() ? "graph" : report_.name, Ink::strong);
  const auto counted = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count_of(count), what, count == 1 ? "" : "s");
  };
  lines(fmt::format("{}, {}, {} in use from the start", counted(report_.ops, "op"),
                    counted(report_.tensors, "tensor"), bytes_text(report_.before.timeline.start)));
  out_ += '\n';
}

void Writer::plot() {
  if (!run_.lanes.empty()) return plot_over_time();
  MemoryPlot plot{.run = {run_.timeline.start, run_.timeline.live},
                  .budget = report_.budget,
                  .recomputed = run_.recomputed_steps};
  if (has_plan())
    plot.before = MemoryProfile{report_.before.timeline.start, report_.before.timeline.live};
  else
    plot.run_name = plot.before_name;
  out_ += plot_memory(plot, style_) + '\n';
}

// Copies and network ops have no place among the steps: what they do beside computing is seen over
// time alone.
void Writer::plot_over_time() {
  constexpr std::size_t kStretches = 4000;
  const Run& own = report_.before;
  const Ticks duration = std::max(run_.timeline.cost.duration, own.timeline.cost.duration);
  const std::vector<Bytes> before = live_by_time(own.timeline, duration, kStretches),
                           live = live_by_time(run_.timeline, duration, kStretches);
  std::vector<std::size_t> again;
  again.reserve(run_.recomputed_steps.size());
  for (const std::size_t step : run_.recomputed_steps)
    again.push_back(stretch_of(run_.timeline.begin[step], duration, kStretches));
  const Lanes& lanes = run_.lanes;
  TimeAxis time{
      .duration = duration,
      .tick = report_.tick,
      .lanes = {{"compute", computing_by_time(lanes, run_.timeline, duration, kStretches), true}}};
  if (!lanes.copies.empty()) {
    time.lanes.push_back({"out", copying_by_time(lanes, true, duration, kStretches)});
    time.lanes.push_back({"in", copying_by_time(lanes, false, duration, kStretches)});
  }
  if (!lanes.sent.empty())
    time.lanes.push_back({"network", sending_by_time(lanes, duration, kStretches)});
  out_ += plot_memory({.run = {run_.timeline.start, live},
                       .before = MemoryProfile{own.timeline.start, before},
                       .budget = report_.budget,
                       .recomputed = again,
                       .time = std::move(time)},
                      style_) +
          '\n';
}

void Writer::figures() {
  TableColumn names, before{"unplanned", Align::right}, after{"plan", Align::right},
      changes{"", Align::right, false, 1};
  const auto row = [&](const char* name, const std::string& own, const std::string& plan,
                       const std::string& changed = {}) {
    names.cells.emplace_back(name);
    before.cells.push_back(own);
    after.cells.push_back(plan);
    changes.cells.push_back(changed);
  };
  const Run& own = report_.before;
  const Cost &a = own.timeline.cost, &b = run_.timeline.cost;
  row("peak", bytes_text(a.peak), bytes_text(b.peak), change(a.peak.count(), b.peak.count()));
  if (report_.peak_in_place) row("peak in place", bytes_text(*report_.peak_in_place), {});
  if (report_.xla_before)
    row("XLA's total", bytes_text(*report_.xla_before),
        report_.xla_after ? bytes_text(*report_.xla_after) : std::string());
  row("duration", ticks_text(a.duration, report_.tick), ticks_text(b.duration, report_.tick));
  row("overhead", percent_text(own.overhead_percent), percent_text(run_.overhead_percent));
  row("steps", count_of(own.timeline.live.size()), count_of(run_.timeline.live.size()));
  row("recomputations", count_of(own.recomputed_steps.size()),
      count_of(run_.recomputed_steps.size()));
  if (run_.in_place > 0) row("in place", count_of(own.in_place), count_of(run_.in_place));
  if (run_.transfers > 0) {
    row("transfers", count_of(own.transfers), count_of(run_.transfers));
    row("host peak", bytes_text(a.host_peak), bytes_text(b.host_peak));
  }
  if (!run_.lanes.empty()) {
    row("waiting", ticks_text(own.lanes.stalled, report_.tick),
        ticks_text(run_.lanes.stalled, report_.tick));
  }
  std::vector<TableColumn> columns{names, before};
  if (has_plan()) columns.insert(columns.end(), {after, changes});
  out_ += draw_table(std::move(columns), style_);
}

void Writer::remarks() {
  std::vector<std::string> remarks;
  // What a plan that breaks a rule comes to is no answer.
  if (report_.budget && !(has_plan() && !report_.notice.empty())) {
    const auto& counted = report_.counted;
    const Bytes budget = *report_.budget,
                taken = counted ? counted->bytes : run_.timeline.cost.peak;
    const std::string who = has_plan() ? "the plan" : "the unplanned step",
                      of = counted ? fmt::format(", {}", to_string(counted->footprint)) : "";
    remarks.push_back(
        fmt::format("Budget {}{}: {} {}.", bytes_text(budget), of, who,
                    taken > budget ? "exceeds it by " + bytes_text(taken - budget)
                                   : "keeps it, with " + bytes_text(budget - taken) + " to spare"));
  }
  if (report_.device) {
    remarks.push_back(reserved_text(*report_.device));
    if (const std::string help = help_text(*report_.device); !help.empty()) remarks.push_back(help);
  }
  if (report_.bound)
    remarks.push_back(
        fmt::format("No plan {} this budget takes less than {} (overhead {}).",
                    report_.transforms.empty() ? "for" : "with these transforms and",
                    ticks_text(*report_.bound, report_.tick),
                    percent_text(overhead_percent(*report_.bound, report_.base_duration))));
  if (!report_.notice.empty()) remarks.push_back(report_.notice);
  if (!remarks.empty()) out_ += '\n';
  for (const std::string& remark : remarks) lines(remark);
}

void Writer::transforms() {
  if (report_.transforms.empty()) return;
  TableColumn names{"transform", Align::left, true}, ops{"ops made", Align::right, false, 2},
      steps{"steps", Align::right}, peaks{"peak there", Align::right, false, 1};
  for (const Applied& applied : report_.transforms) {
    names.cells.push_back(applied.what);
    ops.cells.push_back(applied.ops == 0 ? "" : count_of(applied.ops));
    steps.cells.push_back(applied.ops == 0 ? ""
                                           : fmt::format("{} to {}", count_of(applied.first),
                                                         count_of(applied.last)));
    peaks.cells.push_back(applied.ops == 0 ? "" : bytes_text(applied.peak));
  }
  heading("Transforms");
  out_ += draw_table({names, ops, steps, peaks}, style_);
}

void Writer::roles() {
  const double peak = std::max<double>(static_cast<double>(run_.timeline.cost.peak.count()), 1);
  const std::size_t bar = style_.width >= 64 ? 24 : 8;
  TableColumn names, bytes{"", Align::right}, shares{"", Align::right},
      bars{.title = "", .ink = Ink::run};
  const auto row = [&](std::string name, Bytes value) {
    if (value.count() == 0) return;
    const double share = static_cast<double>(value.count()) / peak;
    names.cells.push_back(std::move(name));
    bytes.cells.push_back(bytes_text(value));
    shares.cells.push_back(percent(share));
    bars.cells.push_back(share_bar(share, bar, style_.unicode));
  };
  for (const RoleBytes& role : run_.by_role) row(std::string(to_string(role.role)), role.bytes);
  row("workspace", run_.workspace);
  row("resident", report_.resident);
  if (names.cells.empty()) return;
  heading(fmt::format("In use at the peak{}", has_plan() ? " of the plan" : ""));
  line(run_.peak_step < run_.timeline.live.size()
           ? fmt::format("step {}, {}", count_of(run_.peak_step), run_.peak_what)
           : "before the first step",
       Ink::faint);
  out_ += draw_table({names, bytes, shares, bars}, style_);
}

void Writer::tensors() {
  if (run_.largest.empty()) return;
  TableColumn bytes{"bytes", Align::right}, shares{"share", Align::right, false, 2},
      roles{"role", Align::left, false, 3}, names{"tensor", Align::left, true},
      makers{"made by", Align::left, true, 4}, origins{"origin", Align::left, true, 1};
  bool any_maker = false, any_origin = false;
  for (std::size_t i = 0; i < std::min(run_.largest.size(), kRows); ++i) {
    const LiveTensor& tensor = run_.largest[i];
    bytes.cells.push_back(bytes_text(tensor.bytes));
    shares.cells.push_back(percent(tensor.share));
    roles.cells.emplace_back(to_string(tensor.role));
    names.cells.push_back(tensor.name);
    makers.cells.push_back(tensor.producer == tensor.name ? "" : tensor.producer);
    origins.cells.push_back(tensor.origin);
    any_maker = any_maker || !makers.cells.back().empty();
    any_origin = any_origin || !tensor.origin.empty();
  }
  heading("The largest tensors there");
  std::vector<TableColumn> columns{bytes, shares, roles, names};
  if (any_maker) columns.push_back(makers);
  if (any_origin) columns.push_back(origins);
  out_ += draw_table(std::move(columns), style_);
}

void Writer::copied() {
  const Lanes& lanes = run_.lanes;
  if (lanes.moved.empty()) return;
  TableColumn bytes{"bytes", Align::right}, out{"out", Align::right}, in{"in", Align::right},
      time{"time", Align::right, false, 2}, hidden{"hidden", Align::right},
      names{"tensor", Align::left, true}, origins{"origin", Align::left, true, 1};
  bool any_origin = false;
  const auto row = [&](const Moved& moved) {
    bytes.cells.push_back(bytes_text(moved.bytes));
    out.cells.push_back(count_of(moved.out));
    in.cells.push_back(count_of(moved.in));
    time.cells.push_back(ticks_text(moved.time, report_.tick));
    hidden.cells.push_back(percent(hidden_share(moved.hidden, moved.time)));
    names.cells.push_back(moved.name);
    origins.cells.push_back(moved.origin);
    any_origin = any_origin || !moved.origin.empty();
  };
  const std::size_t shown = std::min(lanes.moved.size(), kRows);
  Moved rest;
  for (std::size_t i = 0; i < lanes.moved.size(); ++i) {
    if (i < shown)
      row(lanes.moved[i]);
    else
      add_up(rest, lanes.moved[i]);
  }
  rest.name = fmt::format("{} more", count_of(lanes.moved.size() - shown));
  if (shown < lanes.moved.size()) row(rest);
  heading("Copied to the host");
  lines(copied_text(lanes, report_.tick));
  std::vector<TableColumn> columns{bytes, out, in, time, hidden, names};
  if (any_origin) columns.push_back(origins);
  out_ += draw_table(std::move(columns), style_);
}

void Writer::network() {
  if (run_.lanes.sent.empty()) return;
  heading("On the network");
  lines(network_text(run_.lanes, report_.tick));
}

void Writer::recomputed() {
  const bool alike = report_.recomputed.size() > kRows && !report_.recomputed_alike.empty();
  const std::vector<Recomputed>& groups = alike ? report_.recomputed_alike : report_.recomputed;
  if (groups.empty()) return;
  TableColumn times{"time", Align::right}, shares{"share", Align::right},
      counts{"times", Align::right}, ops{"ops", Align::right, false, 2},
      origins{report_.recomputed_by, Align::left, true},
      bars{"", Align::left, false, 3, Ink::again};
  const std::size_t shown = std::min(groups.size(), kRows);
  const auto row = [&](const Recomputed& group) {
    times.cells.push_back(ticks_text(group.time, report_.tick));
    shares.cells.push_back(percent(group.share));
    counts.cells.push_back(count_of(group.times));
    ops.cells.push_back(count_of(group.ops));
    origins.cells.push_back(group.what);
    bars.cells.push_back(share_bar(group.share, 10, style_.unicode));
  };
  for (std::size_t i = 0; i < shown; ++i) row(groups[i]);
  if (shown < groups.size()) {
    Recomputed rest;
    rest.what = fmt::format("{} more", count_of(groups.size() - shown));
    for (std::size_t i = shown; i < groups.size(); ++i) {
      const Recomputed& group = groups[i];
      rest.ops += group.ops;
      rest.times += group.times;
      rest.time += group.time;
      rest.share += group.share;
    }
    row(rest);
  }
  heading(fmt::format("Recomputed by {}: {}", report_.recomputed_by,
                      ticks_text(run_.recomputed_time, report_.tick)));
  out_ += draw_table({times, shares, counts, ops, bars, origins}, style_);
}

void Writer::blocks() {
  if (report_.blocks.empty()) return;
  TableColumn times{"times", Align::right}, ops{"ops each", Align::right},
      shares{"of all ops", Align::right, false, 1},
      durations{"of the time", Align::right, false, 2}, phases{"phase", Align::left, false, 3},
      origins{"where", Align::left, true};
  bool any_phase = false;
  for (const Repetition& block : report_.blocks) {
    times.cells.push_back(count_of(block.times));
    ops.cells.push_back(count_of(block.ops));
    shares.cells.push_back(percent(block.share_of_ops));
    durations.cells.push_back(percent(block.share_of_time));
    phases.cells.push_back(block.phase);
    origins.cells.push_back(block.where);
    any_phase = any_phase || !block.phase.empty();
  }
  heading("Blocks that repeat");
  std::vector<TableColumn> columns{times, ops, shares, durations};
  if (any_phase) columns.push_back(phases);
  columns.push_back(origins);
  out_ += draw_table(std::move(columns), style_);
}

void Writer::parts() {
  const std::string table = parts_text(report_.parts, report_.base_duration, style_);
  if (table.empty()) return;
  heading("Found by");
  out_ += table;
}

}  // namespace

std::string text_report(const Report& report, const TerminalStyle& style) {
  return Writer(report, style).write();
}

}  // namespace lowtide::report
