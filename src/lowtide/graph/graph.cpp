// Labels; everything else in Graph is data.
#include "lowtide/graph/graph.h"

#include "lowtide/base/error.h"

namespace lowtide {

Graph Graph::named(std::string name) && {
  name_ = std::move(name);
  return std::move(*this);
}

Graph Graph::timed(TickUnit tick, std::span<const Ticks> times) && {
  check(times.size() == ops_.size(), "every op has a time");
  tick_ = tick;
  times_.assign(times.begin(), times.end());
  total_time_ = network_time_ = Ticks(0);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    check(times[i] >= Ticks(0), "no time is negative");
    ops_[i].time = times[i];
    try {
      total_time_ = checked_add(total_time_, times[i]);
      if (on_network(OpId(i))) network_time_ += times[i];
    } catch (const OverflowError&) {
      throw InputError(label(OpId(i)), "the times of the graph add up to 2^63 or more");
    }
  }
  return std::move(*this);
}

Graph Graph::without_recomputation() && {
  for (Op& op : ops_) op.recomputable = false;
  recomputable_.assign(ops_.size(), 0);
  return std::move(*this);
}

Graph Graph::without_in_place() && {
  in_place_ = overwrites_ = Csr<InPlacePair>();
  least_workspaces_ = workspaces_;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    in_place_.end_row();
    overwrites_.end_row();
  }
  return std::move(*this);
}

Graph Graph::with_homes_on_device() && {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!on_host(TensorId(i))) continue;
    tensors_[i].home = Home::device;
    tensors_[i].releasable = false;
  }
  has_tensors_on_host_ = false;
  return std::move(*this);
}

Graph Graph::without_network_lane() && {
  for (Op& op : ops_) op.lane = Lane::compute;
  has_network_ops_ = false;
  network_time_ = Ticks(0);
  return std::move(*this);
}

Graph Graph::with_workspaces(std::span<const Bytes> workspaces) && {
  check(workspaces.size() == ops_.size(), "every op has a workspace");
  Bytes sum = resident_;
  for (const Bytes bytes : bytes_) sum += bytes;  // checked when the graph was built
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    check(workspaces[i] >= Bytes(0), "no workspace is negative");
    ops_[i].workspace = workspaces[i];
    try {
      sum = checked_add(sum, workspaces[i]);
    } catch (const OverflowError&) {
      throw InputError(label(OpId(i)), "the bytes of the graph add up to 2^63 or more");
    }
  }
  for (std::size_t i = 0; i < ops_.size(); ++i)
    least_workspaces_[i] += workspaces[i] - workspaces_[i];
  workspaces_.assign(workspaces.begin(), workspaces.end());
  return std::move(*this);
}

namespace {
std::string make_label(std::string_view what, std::size_t index, const std::string& name) {
  std::string text = std::string(what) + " " + std::to_string(index);
  if (!name.empty()) text += " \"" + name + "\"";
  return text;
}
}  // namespace

std::string Graph::label(OpId id) const { return make_label("op", id.index(), op(id).name); }
std::string Graph::label(TensorId id) const {
  return make_label("tensor", id.index(), tensor(id).name);
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::parameter: return "parameter";
    case Role::state: return "state";
    case Role::constant: return "constant";
    case Role::activation: return "activation";
    case Role::gradient: return "gradient";
  }
  return "activation";
}

std::string_view to_string(Home home) { return home == Home::host ? "host" : "device"; }

std::string_view to_string(Lane lane) { return lane == Lane::network ? "network" : "compute"; }

std::string_view to_string(TickUnit unit) {
  switch (unit) {
    case TickUnit::ns: return "ns";
    case TickUnit::us: return "us";
    case TickUnit::ms: return "ms";
    case TickUnit::flop: return "flop";
    case TickUnit::none: return "none";
  }
  return "none";
}

}  // namespace lowtide
