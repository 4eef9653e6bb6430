// The builder with which rules make a replacement. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/transforms/substitution.h"

namespace lowtide {

// `from` and `to` hold the same elements in different layouts. Translates `seen`, a view of `from`,
// into the view of `to` with the same elements. nullopt if that is no strided view, if shapes or
// number types of `from` and `to` differ, or if elements of `from` overlap.
std::optional<Operand> relaid(const Operand& seen, const Operand& from, const Operand& to);

// Row-major: contiguous from the first element on, with the last dimension innermost.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape);
bool is_row_major(const Operand& operand);

// mm, addmm, bmm, baddbmm: their results are row-major, whatever the layout of their operands.
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
  // The only op of the substitution. Refuses if there are several, or if its kind is no anchor.
  OpId only_op() const;
  bool is_anchor(OpId op) const;

  // Throws TransformRefused with the label of the op or tensor, then the words.
  template <class AnyId>
  [[noreturn]] void refuse(AnyId id, const std::string& words) const {
    refuse_with(label(id) + " " + words);
  }
  std::string label(OpId op) const { return labels_.op(op); }
  std::string label(TensorId tensor) const { return labels_.tensor(tensor); }

  // The operand with that argument name. Refuses if there is none.
  const Operand& operand(OpId op, std::string_view argument) const;
  // The op's only result. Refuses unless the result is row-major and covers the op's only output.
  const Operand& only_result(OpId op) const;
  // Every operand that reads the tensor. Refuses if an op reads the tensor without an operand or
  // mutates it, or if the tensor is an output of the graph.
  std::vector<Reading> readings(TensorId tensor) const;

  // Makes a row-major tensor. Refuses sizes of 2^63 bytes or more.
  Operand make_tensor(const std::string& name, std::vector<std::int64_t> shape,
                      const Operand& like);
  // Adds an op. Its inputs and outputs follow from its operands and results. `like`: see
  // Replacement.
  void make_op(Op op, OpId like);
  Replacement::Made& latest() { return made_.ops.back(); }
  // Adds aten.cat along a dimension, and returns its result.
  Operand make_cat(const std::string& name, const std::vector<Operand>& parts, std::int64_t dim,
                   OpId before);
  void drop(OpId op) { made_.gone.push_back(op); }
  // Replaces an operand. Refuses if the layout of the reader's result would change, or if the
  // reader would have to copy the operand.
  void reread(const Reading& reading, Operand now);
  // Replaces every operand that views `from` by the same elements of `to`. Refuses if one of them
  // has no such view.
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
