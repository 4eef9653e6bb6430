#include "lowtide/report/page.h"

#include <unordered_map>

#include "lowtide/report/report_page.h"

namespace lowtide::report {

namespace {

// Nothing in JSON but strings may hold a '<', and no string must end the script element.
std::string inside_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

// Text as HTML shows it.
std::string html_text(std::string_view text) {
  std::string safe;
  for (char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// `page` with each {{name}} replaced in one pass, so that nothing put in is looked at again.
std::string put_in(std::string_view page,
                   const std::unordered_map<std::string_view, std::string>& parts) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = page.find("}}", open);
    out += parts.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string make_page(const PageParts& parts) {
  return put_in(kPageHtml, {{"title", html_text(parts.title)},
                            {"style", std::string(kPageStyle) + parts.style},
                            {"text", html_text(parts.text)},
                            {"main", std::string(parts.main)},
                            {"data", inside_script(parts.data)},
                            {"script", std::string(kPageTools) + parts.script}});
}

}  // namespace lowtide::report
