#include "lowtide/report/graph_text.h"

#include <cstdint>

#include <fmt/format.h>

#include "lowtide/report/plot_text.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

std::string graph_text(const Graph& graph, std::size_t columns, bool unicode) {
  const std::string name = graph.name().empty() ? "without a name" : graph.name();
  return shorten(fmt::format("{} ({} ops, {} tensors)", name,
                             count_text(static_cast<std::int64_t>(graph.op_count())),
                             count_text(static_cast<std::int64_t>(graph.tensor_count()))),
                 columns, unicode);
}

}  // namespace lowtide::report
