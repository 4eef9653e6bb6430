// Algorithm 1: the schedule that a division gives.
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
  // Looks at every call once and counts how long its schedule is. `graph` and `division` must live
  // as long. `spend` is told of work; where it says stop, length() is nothing.
  TreeSchedule(const OpGraph& graph, const Division& division,
               const std::vector<std::int32_t>& positions,
               const std::function<bool(std::int64_t)>& spend);

  // How many computations the schedule has; as a double, since it may be n to the log of the width.
  std::optional<double> length() const { return length_; }
  // The schedule. Every op's makers come before it.
  std::vector<OpId> emit() const;

 private:
  // TWRemat for a part and what one op outside it, the reader, needs of it. So the paper's S is
  // the makers of the reader's inputs within the part.
  struct Call {
    Node reader;  // op_count() for the end, which reads the final ops
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
  // By reader: its outermost calls. Those of a node of a separator are for the parts right below.
  std::vector<std::vector<std::int32_t>> outermost_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t stamp_ = 0;
  std::optional<double> length_;
};

}  // namespace lowtide::solve::kumar::twremat
