#include "lowtide/io/hlo/boundary.h"

#include <cstddef>
#include <string>

#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/in_place.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

class Donation {
 public:
  Donation(const Module& module, Body& body) : module_(module), body_(body) {}

  TensorIndex donate(std::int64_t parameter, const ShapeIndex& at) {
    const auto& parameters = body_.within().parameters;
    if (parameter < 0 || static_cast<std::size_t>(parameter) >= parameters.size())
      refuse("parameter " + std::to_string(parameter) + ", and its entry has " +
             std::to_string(parameters.size()));
    const TensorIndex given = tensor(parameters[static_cast<std::size_t>(parameter)], at);
    body_.draft.tensors[index(given)].releasable = true;
    body_.draft.tensors[index(given)].stays = false;
    return given;
  }

  TensorIndex tensor(std::uint32_t instruction, const ShapeIndex& at) {
    const Instruction& one = body_.within().instructions[instruction];
    const std::uint32_t leaf = leaf_at(one.shape, at);
    if (leaf == kNone) refuse("an array that " + quoted(one.name) + " does not have");
    return body_.leaves(body_.value(instruction))[leaf].tensor;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    Cursor(module_.text)
        .refuse_at(0, "input_output_alias or buffer_donor of the module names " + what);
  }

  const Module& module_;
  Body& body_;
};

}  // namespace

std::vector<std::int64_t> set_outputs(Body& body) {
  Draft& draft = body.draft;
  std::vector<std::int64_t> parameter_leaf(draft.tensors.size(), -1);
  std::int64_t count = 0;
  for (const std::uint32_t parameter : body.within().parameters)
    for (const Leaf& leaf : body.leaves(body.value(parameter))) {
      draft.tensors[index(leaf.tensor)].stays = true;
      parameter_leaf[index(leaf.tensor)] = count++;
    }
  std::vector<std::int64_t> passes;
  std::vector<bool> listed(draft.tensors.size(), false);
  for (const Leaf& leaf : body.leaves(body.value(body.within().root))) {
    passes.push_back(parameter_leaf[index(leaf.tensor)]);
    if (!listed[index(leaf.tensor)]) draft.outputs.push_back(leaf.tensor);
    listed[index(leaf.tensor)] = true;
  }
  return passes;
}

void donate(const Module& module, Body& body) {
  Donation donation(module, body);
  for (const auto& [parameter, at] : module.donated) donation.donate(parameter, at);
  for (const AliasEntry& alias : module.aliases) {
    const TensorIndex input = donation.donate(alias.parameter, alias.index);
    const TensorIndex output = donation.tensor(body.within().root, alias.output);
    if (input != output) body.draft.aliases.push_back({output, input});
  }
}

}  // namespace lowtide::io::hlo
