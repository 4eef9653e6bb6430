// The instructions of one computation. Private to the room.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lowtide/io/hlo/cursor.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// A computation that an instruction names, perhaps before it has been read.
struct NamedCall {
  std::uint32_t computation, instruction;  // who names it
  std::string_view role, name;
};

class InstructionParser {
 public:
  InstructionParser(Cursor& cursor, Computation& into, std::vector<NamedCall>& calls,
                    std::uint32_t computation)
      : cursor_(cursor), into_(into), calls_(calls), computation_(computation) {}

  // Reads the next instruction; InputError as parse_module says.
  void parse();

 private:
  void parse_rest(Instruction& instruction);
  void parse_operands(Instruction& instruction);
  void parse_literal(Instruction& instruction);
  void read_attributes(Instruction& instruction);
  std::uint32_t defined(std::string_view name) const;

  Cursor& cursor_;
  Computation& into_;
  std::vector<NamedCall>& calls_;
  std::uint32_t computation_;
  bool has_root_ = false;
  std::unordered_map<std::string_view, std::uint32_t> index_of_;
};

}  // namespace lowtide::io::hlo
