// The module: its header, and the computations one after the other. parse_instruction.cpp has what
// stands on the lines of a computation.
#include "lowtide/io/hlo/parse.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/io/hlo/attributes.h"
#include "lowtide/io/hlo/parse_instruction.h"
#include "lowtide/io/reader_support.h"

namespace lowtide::io::hlo {

namespace {

// Lists of source files and stack frames that XLA writes between header and computations; each line
// begins with a number.
constexpr std::string_view kListings[] = {"FileNames", "FunctionNames", "FileLocations",
                                          "StackFrames"};

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text) { module_.text = text; }

  Module parse() {
    parse_header();
    while (!cursor_.at_end())
      if (!skip_listing()) parse_computation();
    if (module_.computations.empty())
      cursor_.refuse("the module has no computation; is the file cut off?");
    if (!has_entry_) module_.entry = static_cast<std::uint32_t>(module_.computations.size() - 1);
    resolve_calls();
    return std::move(module_);
  }

 private:
  void parse_header();
  bool skip_listing();
  void parse_computation();
  void finish(Computation& computation);
  void resolve_calls();

  Cursor cursor_;
  Module module_;
  bool has_entry_ = false;
  std::unordered_map<std::string_view, std::uint32_t> index_of_;  // of computations
  std::vector<NamedCall> calls_;
};

void ModuleParser::parse_header() {
  if (!cursor_.take("HloModule")) cursor_.refuse("expected HloModule and the module's name");
  module_.name = cursor_.name();
  const std::vector<Attribute> attributes = parse_attributes(cursor_);
  for (const Attribute& one : attributes) {
    Cursor value(module_.text, static_cast<std::size_t>(one.value.data() - module_.text.data()));
    if (one.name == "is_scheduled") module_.scheduled = one.value == "true";
    if (one.name == "input_output_alias") module_.aliases = parse_aliases(value);
    if (one.name == "buffer_donor") module_.donated = parse_donors(value);
  }
}

bool ModuleParser::skip_listing() {
  const std::size_t before = cursor_.at();
  const std::string_view word = cursor_.word();
  if (std::ranges::find(kListings, word) == std::end(kListings)) {
    cursor_.seek(before);
    return false;
  }
  for (cursor_.skip_space(); cursor_.peek() >= '0' && cursor_.peek() <= '9'; cursor_.skip_space())
    cursor_.skip_line();
  return true;
}

void ModuleParser::parse_computation() {
  const std::size_t start = cursor_.at();
  bool entry = false;
  if (cursor_.take("HloModule"))
    cursor_.refuse_at(start, "a second module begins here; put each into a file of its own");
  const std::size_t before = cursor_.at();
  if (cursor_.word() == "ENTRY") {
    entry = true;
  } else {
    cursor_.seek(before);
  }
  cursor_.skip_space();
  Computation computation;
  computation.at = cursor_.at();
  computation.name = cursor_.name();
  if (computation.name.empty()) cursor_.refuse("expected a computation, such as \"ENTRY main {\"");
  cursor_.skip_space();
  if (cursor_.peek() == '(') cursor_.group();
  if (cursor_.take("->")) parse_shape(cursor_);
  cursor_.expect('{', "before the instructions of computation " + quoted(computation.name));
  InstructionParser instructions(cursor_, computation, calls_,
                                 static_cast<std::uint32_t>(module_.computations.size()));
  while (!cursor_.take('}')) {
    if (cursor_.at_end())
      cursor_.refuse("the file ends in computation " + quoted(computation.name) +
                     ": it is cut off");
    instructions.parse();
  }
  parse_attributes(cursor_);  // execution_thread="..."
  finish(computation);
  const auto index = static_cast<std::uint32_t>(module_.computations.size());
  if (!index_of_.emplace(computation.name, index).second)
    cursor_.refuse_at(computation.at, "two computations have the name " + quoted(computation.name));
  if (entry && has_entry_) cursor_.refuse_at(start, "a second ENTRY: a module has one");
  if (entry) module_.entry = index;
  has_entry_ = has_entry_ || entry;
  module_.computations.push_back(std::move(computation));
}

// Sorts the parameters by number.
void ModuleParser::finish(Computation& computation) {
  const auto refuse = [&](std::size_t at, const std::string& reason) {
    cursor_.refuse_at(at, "computation " + quoted(computation.name) + ": " + reason);
  };
  if (computation.instructions.empty()) refuse(computation.at, "it has no instruction");
  std::size_t count = 0;
  for (const Instruction& one : computation.instructions) count += one.parameter >= 0;
  computation.parameters.assign(count, kNone);
  for (std::size_t i = 0; i < computation.instructions.size(); ++i) {
    const Instruction& one = computation.instructions[i];
    if (one.parameter < 0) continue;
    const auto number = static_cast<std::size_t>(one.parameter);
    if (number >= count || computation.parameters[number] != kNone)
      refuse(one.at, "parameter " + quoted(one.name) + " has the number " +
                         std::to_string(one.parameter) +
                         "; the parameters must be numbered from 0, each once, and there are " +
                         std::to_string(count));
    computation.parameters[number] = static_cast<std::uint32_t>(i);
  }
}

void ModuleParser::resolve_calls() {
  for (const NamedCall& call : calls_) {
    const auto found = index_of_.find(call.name);
    Instruction& caller = module_.computations[call.computation].instructions[call.instruction];
    if (found == index_of_.end())
      cursor_.refuse_at(static_cast<std::size_t>(call.name.data() - module_.text.data()),
                        "instruction " + quoted(caller.name) + ": there is no computation " +
                            quoted(call.name) + " in this file; dump the whole module");
    caller.called.push_back({call.role, found->second});
  }
}

}  // namespace

Module parse_module(std::string_view text) { return ModuleParser(text).parse(); }

}  // namespace lowtide::io::hlo
