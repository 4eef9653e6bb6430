// Every file under malformed/ must be refused in the place and with the words of listing.json:
// {"graph/file": [place, reason], "plan/file": ...}.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/io/graph_json.h"
#include "lowtide/io/json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"

#include "io/refusal.h"

namespace lowtide {
namespace {

const std::string kFolder = std::string(LOWTIDE_SOURCE_DIR) + "/tests/io/malformed/";

TEST_CASE("malformed files are refused, each with its place and message") {
  const io::JsonDocument listing(io::read_text_file(kFolder + "listing.json"));
  std::set<std::string> listed;
  std::size_t graphs = 0, plans = 0;
  for (const auto& [name, expected] : listing.root().members()) {
    const std::string path = kFolder + std::string(name);
    const bool graph = name.starts_with("graph/");
    ++(graph ? graphs : plans);
    const Refusal found = refusal_of([&] {
      if (graph) {
        io::read_graph(path);
      } else {
        io::read_plan(path);
      }
    });
    const auto items = expected.items();
    auto item = items.begin();
    const std::string place((*item).as_string()), reason((*++item).as_string());
    CHECK(found == Refusal{path, place, reason});
    listed.insert(std::string(name));
  }
  CHECK(graphs >= 45);
  CHECK(plans >= 25);
  for (const char* kind : {"graph", "plan"})
    for (const auto& entry : std::filesystem::directory_iterator(kFolder + kind))
      CHECK_MESSAGE(listed.contains(std::string(kind) + "/" + entry.path().filename().string()),
                    entry.path().string() << " is not in listing.json");
}

}  // namespace
}  // namespace lowtide
