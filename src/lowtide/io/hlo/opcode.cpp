#include "lowtide/io/hlo/opcode.h"

#include <span>
#include <unordered_map>

namespace lowtide::io::hlo {

namespace {

std::span<const Opcode> opcodes() {
  using enum OpcodeKind;
  static constexpr Opcode kOpcodes[] = {
      {"abs", elementwise, 1, 1},
      {"add", elementwise, 2, 2},
      {"and", elementwise, 2, 2},
      {"atan2", elementwise, 2, 2},
      {"cbrt", elementwise, 1, 1},
      {"ceil", elementwise, 1, 1},
      {"clamp", elementwise, 3, 3},
      {"compare", elementwise, 2, 2},
      {"complex", elementwise, 2, 2},
      {"convert", elementwise, 1, 1},
      {"cosine", elementwise, 1, 1},
      {"count-leading-zeros", elementwise, 1, 1},
      {"divide", elementwise, 2, 2},
      {"erf", elementwise, 1, 1},
      {"exponential", elementwise, 1, 1},
      {"exponential-minus-one", elementwise, 1, 1},
      {"floor", elementwise, 1, 1},
      {"imag", elementwise, 1, 1},
      {"is-finite", elementwise, 1, 1},
      {"log", elementwise, 1, 1},
      {"log-plus-one", elementwise, 1, 1},
      {"logistic", elementwise, 1, 1},
      {"map", elementwise, 1, SIZE_MAX},
      {"maximum", elementwise, 2, 2},
      {"minimum", elementwise, 2, 2},
      {"multiply", elementwise, 2, 2},
      {"negate", elementwise, 1, 1},
      {"not", elementwise, 1, 1},
      {"or", elementwise, 2, 2},
      {"popcnt", elementwise, 1, 1},
      {"power", elementwise, 2, 2},
      {"real", elementwise, 1, 1},
      {"reduce-precision", elementwise, 1, 1},
      {"remainder", elementwise, 2, 2},
      {"round-nearest-afz", elementwise, 1, 1},
      {"round-nearest-even", elementwise, 1, 1},
      {"rsqrt", elementwise, 1, 1},
      {"select", elementwise, 3, 3},
      {"shift-left", elementwise, 2, 2},
      {"shift-right-arithmetic", elementwise, 2, 2},
      {"shift-right-logical", elementwise, 2, 2},
      {"sign", elementwise, 1, 1},
      {"sine", elementwise, 1, 1},
      {"sqrt", elementwise, 1, 1},
      {"stochastic-convert", elementwise, 2, 2},
      {"subtract", elementwise, 2, 2},
      {"tan", elementwise, 1, 1},
      {"tanh", elementwise, 1, 1},
      {"xor", elementwise, 2, 2},

      {"bitcast-convert", movement, 1, 1},
      {"broadcast", movement, 1, 1},
      {"concatenate", movement, 1, SIZE_MAX},
      {"constant", movement, 0, 0},
      {"copy", movement, 1, 1},
      {"dynamic-reshape", movement, 1, SIZE_MAX},
      {"dynamic-slice", movement, 1, SIZE_MAX},
      {"dynamic-update-slice", movement, 2, SIZE_MAX},
      {"gather", movement, 2, 2},
      {"get-dimension-size", movement, 1, 1},
      {"iota", movement, 0, 0},
      {"pad", movement, 2, 2},
      {"parameter", movement, 0, 0},
      {"reshape", movement, 1, 1},
      {"reverse", movement, 1, 1},
      {"set-dimension-size", movement, 2, 2},
      {"slice", movement, 1, 1},
      {"transpose", movement, 1, 1},

      {"bitcast", view, 1, 1},
      {"domain", view, 1, 1},
      {"get-tuple-element", view, 1, 1},
      {"optimization-barrier", view, 1, SIZE_MAX},
      {"opt-barrier", view, 1, SIZE_MAX},
      {"tuple", view},
      {"add-dependency", view, 2, 2},

      {"batch-norm-grad", counted, 5, 5},
      {"batch-norm-inference", counted, 5, 5},
      {"batch-norm-training", counted, 3, 3},
      {"cholesky", counted, 1, 1},
      {"convolution", counted, 2, 2},
      {"custom-call", counted},
      {"dot", counted, 2, SIZE_MAX},
      {"fft", counted, 1, 1},
      {"fusion", counted},
      {"ragged-dot", counted, 3, SIZE_MAX},
      {"reduce", counted, 2, SIZE_MAX},
      {"reduce-window", counted, 2, SIZE_MAX},
      {"rng-bit-generator", counted, 1, 1},
      {"scaled-dot", counted, 2, SIZE_MAX},
      {"scan", counted, 1, SIZE_MAX},
      {"scatter", counted, 3, SIZE_MAX},
      {"select-and-scatter", counted, 3, 3},
      {"sort", counted, 1, SIZE_MAX},
      {"topk", counted, 1, 1},
      {"triangular-solve", counted, 2, 2},

      {"all-gather", collective, 1, SIZE_MAX},
      {"all-reduce", collective, 1, SIZE_MAX},
      {"all-to-all", collective, 1, SIZE_MAX},
      {"collective-broadcast", collective, 1, SIZE_MAX},
      {"collective-permute", collective, 1, SIZE_MAX},
      {"ragged-all-to-all", collective, 1, SIZE_MAX},
      {"reduce-scatter", collective, 1, SIZE_MAX},
      {"recv", collective, 0, 1},
      {"send", collective, 1, 2},

      {"after-all", effect},
      {"infeed", effect, 0, 1},
      {"outfeed", effect, 1, 2},
      {"partition-id", effect, 0, 0},
      {"replica-id", effect, 0, 0},
      {"rng", effect, 2, 2},
      {"rng-get-and-update-state", effect, 0, 0},

      {"call", control},
      {"conditional", control, 2, SIZE_MAX},
      {"while", control, 1, 1},
  };
  return kOpcodes;
}

constexpr Opcode kUnknown{};

}  // namespace

const Opcode& opcode_of(std::string_view name) {
  static const auto* const table = [] {
    auto* made = new std::unordered_map<std::string_view, const Opcode*>;
    for (const Opcode& one : opcodes()) made->emplace(one.name, &one);
    return made;
  }();
  const auto found = table->find(name);
  return found == table->end() ? kUnknown : *found->second;
}

AsyncOpcode async_of(std::string_view opcode) {
  constexpr struct {
    std::string_view end;
    AsyncPart part;
  } kParts[] = {
      {"-start", AsyncPart::start}, {"-update", AsyncPart::update}, {"-done", AsyncPart::done}};
  for (const auto& [end, part] : kParts)
    if (opcode.ends_with(end)) return {part, opcode.substr(0, opcode.size() - end.size())};
  // `send` and `recv` begin what `send-done` and `recv-done` end.
  if (opcode == "send" || opcode == "recv") return {AsyncPart::start, opcode};
  return {};
}

std::string_view begun(std::string_view opcode) {
  const AsyncOpcode async = async_of(opcode);
  return async.part == AsyncPart::start ? async.wrapped : opcode;
}

}  // namespace lowtide::io::hlo
