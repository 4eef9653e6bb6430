// Ops are read first, because a tensor's default role depends on whether an op produces it. This
// file checks types and keys; the GraphBuilder checks the meaning.
#include "lowtide/io/graph_json.h"

#include <array>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"
#include "lowtide/io/hlo_text.h"
#include "lowtide/io/json.h"
#include "lowtide/io/node_link.h"
#include "lowtide/io/operand_json.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

constexpr std::array kRoles{Role::input,    Role::parameter,  Role::state,
                            Role::constant, Role::activation, Role::gradient};
constexpr std::array kTicks{TickUnit::ns, TickUnit::us, TickUnit::ms, TickUnit::flop,
                            TickUnit::none};

constexpr std::array kHomes{Home::device, Home::host};
constexpr std::array kLanes{Lane::compute, Lane::network};

template <class Word, std::size_t N>
Word read_word(JsonValue value, const std::array<Word, N>& words) {
  const std::string_view given = value.as_string();
  std::string known;
  for (Word word : words) {
    if (given == to_string(word)) return word;
    known += (known.empty() ? "" : ", ") + std::string(to_string(word));
  }
  value.refuse("unknown word " + quoted(given) + "; must be one of " + known);
}

void read_indices(JsonValue value, std::vector<std::int64_t>& indices) {
  indices.clear();
  indices.reserve(value.size());
  for (const JsonValue item : value.items()) indices.push_back(item.as_integer());
}

void read_pairs(JsonValue value, std::vector<std::array<std::int64_t, 2>>& pairs) {
  for (const JsonValue item : value.items()) {
    if (!item.is(JsonKind::array) || item.size() != 2)
      item.refuse("must be a pair of an input and an output, such as [3, 5]");
    const auto items = item.items();
    auto tensor = items.begin();
    const std::int64_t input = (*tensor).as_integer();
    pairs.push_back({input, (*++tensor).as_integer()});
  }
}

[[noreturn]] void refuse_missing(JsonValue object, std::string_view key) {
  object.refuse("has no " + quoted(key));
}

// Runs `read`; an InputError from it gets the object's label in front of its reason.
template <class Read>
void named(std::string_view what, std::size_t index, JsonValue object, Read read) {
  try {
    read();
  } catch (const InputError& error) {
    throw InputError(error.place(), label_of(what, index, object) + ": " + error.reason());
  }
}

class GraphReader {
 public:
  Graph read(JsonValue root);
  UnknownKeys unknown;

 private:
  void read_op(JsonValue object);
  void read_tensor(JsonValue object, bool produced);

  GraphBuilder builder_;
  OpLinks links_;                   // of the op being read; kept for its memory
  std::vector<std::int64_t> made_;  // outputs of all ops, as given
};

void GraphReader::read_op(JsonValue object) {
  Op op;
  bool has_inputs = false, has_outputs = false, has_time = false;
  links_.after.clear();
  links_.mutates.clear();
  links_.in_place.clear();
  links_.operand_tensors.clear();
  links_.result_tensors.clear();
  for (const auto& [key, value] : object.members()) {
    if (key == "inputs") {
      read_indices(value, links_.inputs);
      has_inputs = true;
    } else if (key == "outputs") {
      read_indices(value, links_.outputs);
      has_outputs = true;
    } else if (key == "time") {
      op.time = Ticks(value.as_integer());
      has_time = true;
    } else if (key == "workspace") {
      op.workspace = Bytes(value.as_integer());
    } else if (key == "recomputable") {
      op.recomputable = value.as_boolean();
    } else if (key == "lane") {
      op.lane = read_word(value, kLanes);
    } else if (key == "after") {
      read_indices(value, links_.after);
    } else if (key == "mutates") {
      read_indices(value, links_.mutates);
    } else if (key == "in_place") {
      read_pairs(value, links_.in_place);
    } else if (key == "operands") {
      op.operands = read_operands(value, &links_.operand_tensors, unknown);
    } else if (key == "results") {
      op.results = read_operands(value, &links_.result_tensors, unknown);
    } else if (key == "arguments") {
      op.arguments = read_arguments(value);
    } else if (key == "name") {
      op.name = value.as_string();
    } else if (key == "kind") {
      op.kind = value.as_string();
    } else if (key == "phase") {
      op.phase = value.as_string();
    } else if (key == "origin") {
      op.origin = value.as_string();
    } else if (key == "attributes") {
      if (!value.is(JsonKind::object)) value.refuse_kind("an object");
      if (value.size() > 0) op.attributes = value.text();
    } else {
      unknown.add("ops", key);
    }
  }
  if (!has_inputs) refuse_missing(object, "inputs");
  if (!has_outputs) refuse_missing(object, "outputs");
  if (!has_time) refuse_missing(object, "time");
  made_.insert(made_.end(), links_.outputs.begin(), links_.outputs.end());
  builder_.add_op(std::move(op), links_);
}

void GraphReader::read_tensor(JsonValue object, bool produced) {
  Tensor tensor;
  tensor.role = produced ? Role::activation : Role::input;
  bool has_bytes = false;
  for (const auto& [key, value] : object.members()) {
    if (key == "bytes") {
      tensor.bytes = Bytes(value.as_integer());
      has_bytes = true;
    } else if (key == "name") {
      tensor.name = value.as_string();
    } else if (key == "role") {
      tensor.role = read_word(value, kRoles);
    } else if (key == "releasable") {
      tensor.releasable = value.as_boolean();
    } else if (key == "stays") {
      tensor.stays = value.as_boolean();
    } else if (key == "home") {
      tensor.home = read_word(value, kHomes);
    } else if (key == "shape") {
      tensor.shape.reserve(value.size());
      for (const JsonValue extent : value.items()) tensor.shape.push_back(extent.as_count());
    } else if (key == "dtype") {
      tensor.dtype = value.as_string();
    } else {
      unknown.add("tensors", key);
    }
  }
  if (!has_bytes) refuse_missing(object, "bytes");
  builder_.add_tensor(std::move(tensor));
}

Graph GraphReader::read(JsonValue root) {
  const auto ops = root.find("ops"), tensors = root.find("tensors");
  if (!tensors) refuse_missing(root, "tensors");
  if (!ops) refuse_missing(root, "ops");
  bool has_outputs = false;
  std::vector<std::int64_t> indices;
  for (const auto& [key, value] : root.members()) {
    if (key == "name") {
      builder_.set_name(std::string(value.as_string()));
    } else if (key == "tick") {
      builder_.set_tick(read_word(value, kTicks));
    } else if (key == "resident_bytes") {
      builder_.set_resident(Bytes(value.as_count()));
    } else if (key == "outputs") {
      read_indices(value, indices);
      builder_.set_outputs(indices);
      has_outputs = true;
    } else if (key == "order") {
      read_indices(value, indices);
      builder_.set_order(indices);
    } else if (key != "format" && key != "version" && key != "ops" && key != "tensors") {
      unknown.add("", key);
    }
  }
  if (!has_outputs) refuse_missing(root, "outputs");

  builder_.reserve(ops->size(), tensors->size());
  std::size_t index = 0;
  for (const JsonValue object : ops->items())
    named("op", index++, object, [&] { read_op(object); });
  std::vector<bool> produced(tensors->size(), false);
  for (std::int64_t made : made_)
    if (made >= 0 && static_cast<std::size_t>(made) < produced.size())
      produced[static_cast<std::size_t>(made)] = true;
  index = 0;
  for (const JsonValue object : tensors->items()) {
    named("tensor", index, object, [&] { read_tensor(object, produced[index]); });
    ++index;
  }
  return builder_.build();
}

GraphFile read_document(const JsonDocument& document) {
  std::vector<std::string> warnings;
  const JsonValue root = document.root();
  if (is_node_link(root)) {
    Graph graph = read_node_link(root, warnings);
    return {std::move(graph), std::move(warnings)};
  }
  check_format(root, "lowtide-graph");
  GraphReader reader;
  Graph graph = reader.read(root);
  reader.unknown.warn(warnings);
  return {std::move(graph), std::move(warnings)};
}

// Options that would have no effect are an error.
void refuse_options(const HloOptions& hlo) {
  if (hlo.device || hlo.outputs_from_start)
    throw InputError(
        "",
        "is no HLO text: only there a device that prices the ops, and outputs from the "
        "start, can be chosen; 'lowtide convert --device' prices other graphs");
}

}  // namespace

GraphFile read_graph(const std::string& path, const HloOptions& hlo) {
  std::string text = read_text_file(path);
  try {
    if (is_hlo_text(text)) return read_hlo(text, hlo);
    refuse_options(hlo);
    const JsonDocument document(text);
    std::string().swap(text);  // a large one would stand beside the graph for nothing
    return read_document(document);
  } catch (const InputError& error) {
    throw error.in_file(name_of_file(path));
  }
}

GraphFile read_graph_document(const JsonDocument& document, const std::string& file_name) {
  try {
    return read_document(document);
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

GraphFile read_graph_text(std::string_view text, const std::string& file_name,
                          const HloOptions& hlo) {
  try {
    if (is_hlo_text(text)) return read_hlo(text, hlo);
    refuse_options(hlo);
    return read_document(JsonDocument(text));
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

}  // namespace lowtide::io
