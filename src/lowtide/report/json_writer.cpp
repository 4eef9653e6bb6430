#include "lowtide/report/json_writer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/report/plot_text.h"

namespace lowtide::report {

void JsonWriter::number(std::int64_t value) { raw(fmt::format_int(value).c_str()); }
void JsonWriter::number(std::size_t value) { raw(fmt::format_int(value).c_str()); }

void JsonWriter::text(std::string_view value) {
  separate();
  out_ += nlohmann::json(shorten(value, kLongestName))
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lowtide::report
