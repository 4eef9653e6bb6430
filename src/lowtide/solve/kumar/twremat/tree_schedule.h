// Algorithm 1: makes a schedule of a division.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lowtide/solve/kumar/common/op_graph.h"
#include "lowtide/solve/kumar/twremat/division.h"

namespace lowtide::solve::kumar::twremat {

class TreeSchedule {
 public:
  // Examines every call once and counts the length of its schedule. `graph` and `division` must
  // outlive this object. `spend` is charged with work; if it says stop, length() is empty.
  TreeSchedule(const OpGraph& graph, const Division& division,
               const std::vector<std::int32_t>& positions,
               const std::function<bool(std::int64_t)>& spend);

  // The number of computations in the schedule; a double, since it may be n to the log of the
  // width.
  std::optional<double> length() const { return length_; }
  // The schedule. Every op comes after the producers of its inputs.
  std::vector<OpId> emit() const;

 private:
  // A call of TWRemat for a component and one op outside it, the reader. The paper's set S is the
  // producers, within the component, of the reader's inputs.
  struct Call {
    Node reader;  // op_count() stands for the end, which reads the final ops
    std::int32_t part;
    std::vector<Node> needed;          // of the separator, by position
    std::vector<Node> outside;         // in separators above; held by those who call
    std::vector<std::int32_t> within;  // calls for the same reader, of parts in this one
    double length = 0;
  };

  void find_calls(const std::function<bool(std::int64_t)>& spend);
  void fill(Call& call);
  void need(Node node, Call& call);
  void emit(const Call& call, std::vector<OpId>& sequence) const;

  const OpGraph& graph_;
  const Division& division_;
  const std::vector<std::int32_t>& positions_;
  std::vector<Call> calls_;
  std::vector<std::vector<Node>> seeds_;  // by call: makers in the part's own separator
  // By reader: its outermost calls. For a node of a separator these are the components right below.
  std::vector<std::vector<std::int32_t>> outermost_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t stamp_ = 0;
  std::optional<double> length_;
};

}  // namespace lowtide::solve::kumar::twremat
