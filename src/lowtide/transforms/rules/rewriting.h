// What rules build a replacement with. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/transforms/substitution.h"

namespace lowtide {

// The same elements as `seen`, a view of what `from` is, where `to` holds them: `from` and `to`
// have one shape and number type, no element of `from` lies twice. Nothing where they are no
// strided part of the other tensor.
std::optional<Operand> relaid(const Operand& seen, const Operand& from, const Operand& to);

// Rows one after the other, from the first element on.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape);
bool is_row_major(const Operand& operand);

// mm, addmm, bmm, baddbmm: what they make lies row by row, whatever they read.
bool multiplies_matrices(const Op& op);

// One operand of an op, as a reader of a tensor.
struct Reading {
  OpId op;
  std::size_t operand = 0;
};

class Rewriting {
 public:
  Rewriting(const Rule& rule, const Graph& graph, std::span<const OpId> ops, const Labels& labels)
      : rule_(rule), graph_(graph), ops_(ops), labels_(labels) {}

  const Graph& graph() const { return graph_; }
  std::span<const OpId> ops() const { return ops_; }
  // The only op that the rule is told; refused if there are more, or if its kind is no anchor.
  OpId only_op() const;
  bool is_anchor(OpId op) const;

  // TransformRefused: `label` of the op or tensor, then the words.
  template <class AnyId>
  [[noreturn]] void refuse(AnyId id, const std::string& words) const {
    refuse_with(label(id) + " " + words);
  }
  std::string label(OpId op) const { return labels_.op(op); }
  std::string label(TensorId tensor) const { return labels_.tensor(tensor); }

  // The operand of that argument; refused if there is none.
  const Operand& operand(OpId op, std::string_view argument) const;
  // The op's only result, where it is all of the op's only output, row-major; refused otherwise.
  const Operand& only_result(OpId op) const;
  // Every operand that sees the tensor; refused where an op reads it without saying how, changes
  // it, or where it is an output of the graph.
  std::vector<Reading> readings(TensorId tensor) const;

  // A tensor that is row-major; refused for sizes that nothing could hold.
  Operand make_tensor(const std::string& name, std::vector<std::int64_t> shape,
                      const Operand& like);
  // Links follow from operands and results. `like`: see Replacement.
  void make_op(Op op, OpId like);
  Replacement::Made& latest() { return made_.ops.back(); }
  // aten.cat along a dimension; the result.
  Operand make_cat(const std::string& name, const std::vector<Operand>& parts, std::int64_t dim,
                   OpId before);
  void drop(OpId op) { made_.gone.push_back(op); }
  // Refused where the reader's result would lie otherwise, or the reader would copy.
  void reread(const Reading& reading, Operand now);
  // All that sees `from` sees the same elements in `to`; refused where one cannot.
  void reread_all(const Operand& from, const Operand& to);

  Replacement take() { return std::move(made_); }

 private:
  [[noreturn]] void refuse_with(const std::string& words) const;

  const Rule& rule_;
  const Graph& graph_;
  std::span<const OpId> ops_;
  const Labels& labels_;
  Replacement made_;
};

}  // namespace lowtide
