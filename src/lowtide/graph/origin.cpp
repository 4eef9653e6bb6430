#include "lowtide/graph/origin.h"

#include <cstddef>

namespace lowtide {

namespace {

bool is_digit(char c) { return '0' <= c && c <= '9'; }

}  // namespace

std::string origin_pattern(std::string_view origin) {
  constexpr std::string_view kSeparators = "._/[]:- ";
  const auto separates = [&](std::size_t at) {
    return at >= origin.size() || kSeparators.find(origin[at]) != std::string_view::npos;
  };
  std::string out;
  for (std::size_t at = 0; at < origin.size();) {
    std::size_t end = at;
    while (end < origin.size() && is_digit(origin[end])) ++end;
    if (end > at && (at == 0 || separates(at - 1)) && separates(end)) {
      out += '*';
      at = end;
    } else {
      out += origin[at++];
    }
  }
  return out;
}

}  // namespace lowtide
