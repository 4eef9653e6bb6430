#include "lowtide/io/hlo/lower.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/hlo/async.h"
#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/hlo/body.h"
#include "lowtide/io/hlo/boundary.h"
#include "lowtide/io/hlo/counts.h"
#include "lowtide/io/hlo/describe.h"
#include "lowtide/io/hlo/in_place.h"
#include "lowtide/io/hlo/opcode.h"
#include "lowtide/io/hlo/price.h"
#include "lowtide/io/hlo/trips.h"

namespace lowtide::io::hlo {

namespace {

// What one op costs.
struct Cost {
  std::int64_t ns = 0, operations = 0;
  Bytes workspace;
};

class Lowering {
 public:
  Lowering(Known& known, std::uint32_t computation)
      : known_(known), body_(known.module.text, known.module.computations[computation]) {}

  Lowered lower(bool is_main) {
    const Computation& within = body_.within();
    body_.draft.name = is_main ? known_.module.name : within.name;
    for (at_ = 0; at_ < within.instructions.size(); ++at_) {
      const Instruction& one = within.instructions[at_];
      try {
        body_.set_value(at_, lower(one));
      } catch (const OverflowError&) {
        body_.refuse(one, "its operations, bytes or time do not fit into 63 bits");
      }
    }
    run_.passes = set_outputs(body_);
    if (is_main) donate(known_.module, body_);
    return {std::move(body_.draft), std::move(run_)};
  }

 private:
  Value lower(const Instruction& one);
  Value lower_view(const Instruction& one);
  Value lower_element(const Instruction& one);
  Value lower_start(const Instruction& one);
  Value lower_done(const Instruction& one);
  Value lower_loop(const Instruction& one);
  Value lower_call(const Instruction& one);
  Value lower_branches(const Instruction& one);
  Value lower_plain(const Instruction& one);

  void add_op(const Instruction& one, Value result, const Cost& cost, Overwrites over);
  Overwrites overwrites(const Instruction& one, Value result);
  Value passing(const Instruction& one, const std::vector<std::int64_t>& passes);
  Cost cost_of(const Instruction& one);
  std::int64_t trips(const Instruction& loop);
  bool begins_collective(const Instruction& one) const;

  Known& known_;
  Body body_;
  Run run_;
  std::uint32_t at_ = 0;  // the instruction that is lowered
};

Value Lowering::lower(const Instruction& one) {
  const AsyncPart part = async_of(one.opcode).part;
  if (one.parameter >= 0) return body_.add_leaves(one, Role::input);
  if (one.opcode == "constant") return body_.add_leaves(one, Role::constant);
  if (opcode_of(one.opcode).kind == OpcodeKind::view || part == AsyncPart::update)
    return lower_view(one);
  if (part == AsyncPart::start) return lower_start(one);
  if (part == AsyncPart::done) return lower_done(one);
  if (one.opcode == "while") return lower_loop(one);
  if (one.opcode == "call") return lower_call(one);
  if (one.opcode == "conditional") return lower_branches(one);
  return lower_plain(one);
}

Value Lowering::lower_view(const Instruction& one) {
  Value value;
  if (one.opcode == "get-tuple-element") {
    value = lower_element(one);
  } else if (one.opcode == "tuple" || one.opcode == "opt-barrier" ||
             one.opcode == "optimization-barrier") {
    value = body_.all_operands(one);
  } else {
    value = body_.operand(one, 0);
  }
  if (value.count != one.shape.leaves) return lower_plain(one);
  if (one.opcode == "add-dependency" || !one.control.empty()) {
    value = body_.copy_of(value);
    Op op = describe(one, 0);
    op.recomputable = false;
    body_.add_wait(at_, std::move(op), value, true);
  }
  return value;
}

Value Lowering::lower_element(const Instruction& one) {
  const auto index = static_cast<std::size_t>(integers_in(one.attribute("index")).front());
  const Shape& element = body_.operand_shape(one, 0).elements[index];
  const Value from = body_.operand(one, 0);
  return {from.first + element.first_leaf, element.leaves};
}

Value Lowering::lower_start(const Instruction& one) {
  const Value result = passing(one, started_leaves(body_.within(), one));
  add_op(one, result, cost_of(one), overwrites(one, result));
  return result;
}

Value Lowering::lower_done(const Instruction& one) {
  const Shape& started = body_.operand_shape(one, 0);
  const auto finished = finished_leaves(one.opcode, started, one.shape);
  if (!finished) return lower_plain(one);
  const Value all = body_.copy_of(body_.operand(one, 0));
  Op op = describe(one, 0);
  op.recomputable = false;
  body_.add_wait(at_, std::move(op), all, true);
  std::vector<Leaf> result;
  for (const std::uint32_t leaf : *finished) result.push_back(body_.leaves(all)[leaf]);
  return body_.add_leaves(result);
}

// A result whose leaves are those of the operands where they pass unchanged, else new.
Value Lowering::passing(const Instruction& one, const std::vector<std::int64_t>& passes) {
  const Value given = body_.all_operands(one);
  return body_.add_leaves(one, Role::activation, [&](std::size_t leaf) {
    const std::int64_t from = passes[leaf];
    return from < 0 ? nullptr : &body_.leaves(given)[static_cast<std::size_t>(from)];
  });
}

Value Lowering::lower_loop(const Instruction& one) {
  const Run& body = known_.runs[one.callee("body")];
  const Run& condition = known_.runs[one.callee("condition")];
  std::vector<std::int64_t> passes = body.passes;
  for (std::size_t i = 0; i < passes.size(); ++i)
    if (passes[i] != static_cast<std::int64_t>(i)) passes[i] = -1;  // it moves from trip to trip
  const Value given = body_.operand(one, 0), result = passing(one, passes);
  Overwrites over;
  for (std::size_t i = 0; i < passes.size(); ++i)
    if (passes[i] < 0)
      over.exact.push_back({body_.leaves(given)[i].tensor, body_.leaves(result)[i].tensor});
  const std::int64_t count = trips(one);
  add_op(one, result,
         {.ns = sum(product({count, sum(body.ns, condition.ns)}), condition.ns),
          .operations = product({count, sum(body.operations, condition.operations)}),
          .workspace = std::max(body.temporaries, condition.temporaries)},
         std::move(over));
  return result;
}

std::int64_t Lowering::trips(const Instruction& loop) {
  const auto known = trips_of(known_.module, body_.within(), loop);
  if (!known) ++known_.uncounted_loops;
  return known.value_or(1);
}

Value Lowering::lower_call(const Instruction& one) {
  const Run& run = known_.runs[one.callee("to_apply")];
  const Value result = passing(one, run.passes);
  add_op(one, result, {run.ns, run.operations, run.temporaries}, overwrites(one, result));
  return result;
}

Value Lowering::lower_branches(const Instruction& one) {
  Cost cost;
  for (const Callee& callee : one.called) {
    const Run& run = known_.runs[callee.computation];
    cost.ns = std::max(cost.ns, run.ns);
    cost.operations = std::max(cost.operations, run.operations);
    cost.workspace = std::max(cost.workspace, run.temporaries);
  }
  const Value result = body_.add_leaves(one, Role::activation);
  add_op(one, result, cost, {});
  return result;
}

Value Lowering::lower_plain(const Instruction& one) {
  const Value result = body_.add_leaves(one, Role::activation);
  add_op(one, result, cost_of(one), overwrites(one, result));
  return result;
}

Cost Lowering::cost_of(const Instruction& one) {
  const std::uint32_t wrapped = one.callee("calls");
  if (one.opcode == "async-start" && wrapped != kNone) {
    const Run& run = known_.runs[wrapped];
    return {run.ns, run.operations, run.temporaries};
  }
  const Work work = work_of(body_.within(), one, known_.inside);
  return {price_of(known_.device, body_.within(), one, work), work.operations, Bytes(0)};
}

// Other instructions run beside it until its "-done".
bool Lowering::begins_collective(const Instruction& one) const {
  const AsyncOpcode async = async_of(one.opcode);
  if (async.part != AsyncPart::start) return false;
  std::string_view name = async.wrapped;
  if (const std::uint32_t wrapped = one.callee("calls"); name == "async" && wrapped != kNone) {
    const Computation& begun = known_.module.computations[wrapped];
    name = begun.instructions[begun.root].opcode;
  }
  return opcode_of(name).kind == OpcodeKind::collective;
}

Overwrites Lowering::overwrites(const Instruction& one, Value result) {
  Overwrites over;
  std::vector<bool> chosen(one.operands.size());
  for (std::size_t slot = 0; slot < chosen.size(); ++slot)
    chosen[slot] = can_overwrite(body_.within(), one, slot, known_.inside);
  over.any = body_.tensors_of(one, chosen);
  for (const LeafPair& pair : own_overwrites(known_.module.text, body_.within(), one))
    over.exact.push_back({body_.leaves(body_.operand(one, pair.slot))[pair.operand].tensor,
                          body_.leaves(result)[pair.result].tensor});
  return over;
}

void Lowering::add_op(const Instruction& one, Value result, const Cost& cost, Overwrites over) {
  Op op = describe(one, cost.operations);
  op.time = Ticks(cost.ns);
  op.workspace = cost.workspace;
  op.recomputable = is_repeatable(one, known_.inside);
  if (begins_collective(one)) op.lane = Lane::network;
  body_.add_op(at_, std::move(op), result, std::move(over));
  run_.ns = sum(run_.ns, cost.ns);
  run_.operations = sum(run_.operations, cost.operations);
}

}  // namespace

Lowered lower(Known& known, std::uint32_t computation, bool is_main) {
  return Lowering(known, computation).lower(is_main);
}

}  // namespace lowtide::io::hlo
