#include "lowtide/plan/footprint.h"

namespace lowtide {

std::string_view to_string(Footprint footprint) {
  switch (footprint) {
    case Footprint::live: return "live";
    case Footprint::arena: return "arena";
    case Footprint::reserved: return "reserved";
  }
  return "";
}

}  // namespace lowtide
