// In-place pairs are chosen last, when it is known which op reads a tensor last: an input that dies
// there comes before one that is read again, and a donated input goes to its own output.
#include "lowtide/io/hlo/draft.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/hlo/cursor.h"

namespace lowtide::io::hlo {

namespace {

class Pairing {
 public:
  explicit Pairing(Draft& draft)
      : draft_(draft),
        last_reader_(draft.tensors.size(), -1),
        is_output_(draft.tensors.size(), false),
        donated_for_(draft.tensors.size(), -1) {
    for (std::size_t op = 0; op < draft.links.size(); ++op)
      for (const std::int64_t input : draft.links[op].inputs)
        last_reader_[index(static_cast<TensorIndex>(input))] = static_cast<OpIndex>(op);
    for (const TensorIndex output : draft.outputs) is_output_[index(output)] = true;
    for (const auto& [output, input] : draft.aliases) donated_for_[index(output)] = input;
  }

  void pair_all() {
    for (std::size_t op = 0; op < draft_.ops.size(); ++op) pair(op);
  }

 private:
  Bytes bytes(TensorIndex tensor) const { return draft_.tensors[index(tensor)].bytes; }
  bool fits(TensorIndex input, TensorIndex output) const {
    return bytes(input) == bytes(output) && bytes(input).count() > 0;
  }
  // Number types and sizes that must agree.
  auto kind_of(TensorIndex tensor) const {
    return std::pair(bytes(tensor), std::string_view(draft_.tensors[index(tensor)].dtype));
  }
  bool may_die(TensorIndex input) const {
    const bool given = draft_.producers[index(input)] < 0;
    return !is_output_[index(input)] && (!given || draft_.tensors[index(input)].releasable);
  }

  void pair(std::size_t op) {
    auto& pairs = draft_.links[op].in_place;
    const auto add = [&](TensorIndex input, TensorIndex output) {
      const bool taken =
          std::ranges::any_of(pairs, [&](const auto& one) { return one[0] == input; });
      if (!taken && may_die(input) && fits(input, output)) pairs.push_back({input, output});
    };
    for (const auto& [input, output] : draft_.overwrites[op].exact) add(input, output);
    pair_any(op, draft_.overwrites[op].any);
  }

  void pair_any(std::size_t op, std::vector<TensorIndex> candidates) {
    auto& pairs = draft_.links[op].in_place;
    std::erase_if(candidates, [&](TensorIndex input) { return !may_die(input); });
    std::ranges::stable_partition(candidates, [&](TensorIndex input) {
      return last_reader_[index(input)] == static_cast<OpIndex>(op);
    });
    std::map<std::pair<Bytes, std::string_view>, std::pair<std::vector<TensorIndex>, std::size_t>>
        outputs;  // and whose turn it is
    for (const std::int64_t made : draft_.links[op].outputs) {
      const auto output = static_cast<TensorIndex>(made);
      const TensorIndex own = donated_for_[index(output)];
      const auto found = std::ranges::find(candidates, own);
      if (own >= 0 && found != candidates.end() && fits(own, output)) {
        pairs.push_back({own, output});
        candidates.erase(found);
      } else if (bytes(output).count() > 0) {
        outputs[kind_of(output)].first.push_back(output);
      }
    }
    for (const TensorIndex input : candidates) {
      const auto found = outputs.find(kind_of(input));
      if (found == outputs.end()) continue;
      auto& [made, turn] = found->second;
      pairs.push_back({input, made[turn++ % made.size()]});
    }
  }

  Draft& draft_;
  std::vector<OpIndex> last_reader_;
  std::vector<bool> is_output_;
  std::vector<TensorIndex> donated_for_;
};

}  // namespace

TensorIndex Draft::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  producers.push_back(-1);
  return static_cast<TensorIndex>(tensors.size() - 1);
}

OpIndex Draft::add_op(Op op, OpLinks op_links, Overwrites over, std::size_t place) {
  const auto added = static_cast<OpIndex>(ops.size());
  for (const std::int64_t output : op_links.outputs)
    producers[static_cast<std::size_t>(output)] = added;
  ops.push_back(std::move(op));
  links.push_back(std::move(op_links));
  overwrites.push_back(std::move(over));
  places.push_back(place);
  return added;
}

void hold_outputs(Draft& draft) {
  std::vector<bool> has_buffer(draft.tensors.size(), false);
  for (const auto& [output, input] : draft.aliases) {
    draft.tensors[index(input)].releasable = false;
    draft.tensors[index(input)].stays = true;
    has_buffer[index(output)] = true;
  }
  for (const TensorIndex output : draft.outputs) {
    if (draft.producers[index(output)] < 0) continue;
    if (!has_buffer[index(output)]) {
      Tensor held = draft.tensors[index(output)];
      held.name += " (held)";
      held.role = Role::state;
      held.stays = true;
      draft.add_tensor(std::move(held));
    }
    draft.tensors[index(output)].bytes = Bytes(0);
  }
}

void leave_temporaries(Draft& draft) {
  for (std::size_t i = 0; i < draft.tensors.size(); ++i)
    if (draft.producers[i] < 0) draft.tensors[i].bytes = Bytes(0);
  for (const TensorIndex output : draft.outputs) draft.tensors[index(output)].bytes = Bytes(0);
}

Graph build(Draft draft, std::string_view text, std::size_t start) {
  Pairing(draft).pair_all();
  GraphBuilder builder;
  builder.set_name(std::move(draft.name));
  builder.set_tick(TickUnit::ns);
  builder.reserve(draft.ops.size(), draft.tensors.size());
  for (Tensor& tensor : draft.tensors) builder.add_tensor(std::move(tensor));
  for (std::size_t op = 0; op < draft.ops.size(); ++op)
    builder.add_op(std::move(draft.ops[op]), draft.links[op]);
  builder.set_outputs({draft.outputs.begin(), draft.outputs.end()});
  try {
    return builder.build();
  } catch (const InputError& error) {
    // The builder's places are those of a graph file: "/ops/12/time".
    constexpr std::string_view kOps = "/ops/";
    std::size_t op = draft.places.size();
    const std::string& place = error.place();
    if (place.starts_with(kOps))
      std::from_chars(place.data() + kOps.size(), place.data() + place.size(), op);
    throw InputError(place_in(text, op < draft.places.size() ? draft.places[op] : start),
                     error.reason());
  }
}

}  // namespace lowtide::io::hlo
