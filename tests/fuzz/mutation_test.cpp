// Fuzzing without a fuzzer: seeds and malformed files, changed at random a few thousand times in
// the ways in which JSON and HLO text break. No coverage guides it; the libFuzzer programs beside
// it have that.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"

#include "fuzz/properties.h"
#include "support/scale.h"

namespace lowtide {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> load(std::initializer_list<const char*> folders) {
  std::vector<fs::path> paths;
  for (const char* folder : folders)
    for (const auto& entry : fs::directory_iterator(fs::path(LOWTIDE_SOURCE_DIR) / folder))
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return contents;
}

struct Language {
  std::string_view ends;  // of pieces
  std::vector<std::string_view> tokens;
};

// The range of the piece around `at`: what stands between two commas, brackets or the like.
std::pair<std::size_t, std::size_t> piece_at(const Language& language, const std::string& text,
                                             std::size_t at) {
  std::size_t first = text.find_last_of(language.ends, at),
              last = text.find_first_of(language.ends, at);
  first = first == std::string::npos ? 0 : first + 1;
  last = last == std::string::npos ? text.size() : last;
  return {std::min(first, last), last};
}

// The next number after `at` becomes another one: links, sizes and steps change, the form does not.
void renumber(Random& random, std::string& text, std::size_t at) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t first = text.find_first_of(kDigits, at);
  if (first == std::string::npos) return;
  const std::size_t last = std::min(text.find_first_not_of(kDigits, first), text.size());
  text.replace(first, last - first, std::to_string(random.below(random.chance(0.9) ? 7 : 5000)));
}

const Language kJson{",:[]{}\n",
                     {"0",
                      "-1",
                      "1",
                      "2",
                      "9223372036854775807",
                      "9223372036854775808",
                      "1.0",
                      "1e9",
                      "-0",
                      "null",
                      "true",
                      "false",
                      "\"\"",
                      "[]",
                      "{}",
                      "[0]",
                      "\"\\u0000\"",
                      "\"name\"",
                      "\"bytes\"",
                      "\"after\"",
                      "\"mutates\"",
                      "\"format\"",
                      "4611686018427387904",
                      ",",
                      ":",
                      "]",
                      "}",
                      "\"\xff\""}};
const Language kHlo{" ,=(){}[]%\n",
                    {"0",
                     "-1",
                     "9223372036854775807",
                     "4611686018427387904",
                     "f32",
                     "s4",
                     "token",
                     "f32[]",
                     "f32[2,3]{1,0}",
                     "(f32[2], s32[])",
                     "[?]",
                     "<=4",
                     "{1,0:T(8,128)S(5)}",
                     "()",
                     "{}",
                     "(",
                     ")",
                     "}",
                     "%",
                     "ROOT ",
                     "ENTRY ",
                     "\n",
                     "/*",
                     "\"",
                     "tuple",
                     "get-tuple-element",
                     "while",
                     "call",
                     "fusion",
                     "conditional",
                     "bitcast",
                     "all-reduce-start",
                     "copy-start",
                     "copy-done",
                     "async-update",
                     "add-dependency",
                     "constant(1)",
                     "parameter(0)",
                     "calls=f",
                     "body=f",
                     "condition=c",
                     "index=1",
                     "known_trip_count",
                     "is_scheduled=true",
                     "control-predecessors={a}"}};

std::string mutated(const Language& language, Random& random, std::string text,
                    const std::vector<std::string>& corpus) {
  const auto& tokens = language.tokens;
  if (text.empty()) return corpus[random.below(corpus.size())];
  const std::size_t at = random.below(text.size());
  const auto [first, last] = piece_at(language, text, at);
  switch (random.below(12)) {
    case 0: text[at] = static_cast<char>(random.below(256)); break;
    case 1: text.erase(at, 1 + random.below(8)); break;
    case 2: text.insert(at, tokens[random.below(tokens.size())]); break;
    case 3: text.resize(at); break;
    case 4: {
      const std::string piece = text.substr(at, 1 + random.below(64));
      text.insert(random.below(text.size()), piece);
      break;
    }
    case 5: {
      const std::string& other = corpus[random.below(corpus.size())];
      if (!other.empty()) text.insert(at, other.substr(random.below(other.size()), 200));
      break;
    }
    case 6:
    case 7: text.replace(first, last - first, tokens[random.below(tokens.size())]); break;
    default: renumber(random, text, at); break;
  }
  if (text.size() > 20000) text.resize(20000);
  return text;
}

template <class Property>
void sweep(const Language& language, std::initializer_list<const char*> folders,
           Property property) {
  const std::vector<std::string> corpus = load(folders);
  std::vector<std::string> good;
  for (const std::string& file : corpus)
    if (property(file)) good.push_back(file);
  int accepted = 0;
  const int rounds = 6000 * test_scale();
  for (int i = 0; i < rounds; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const auto& from = random.chance(0.8) ? good : corpus;
    std::string text = from[random.below(from.size())];
    for (std::size_t k = random.below(3) + 1; k > 0; --k)
      text = mutated(language, random, text, corpus);
    try {
      if (property(text)) ++accepted;
    } catch (const std::exception& error) {
      FAIL("round " << i << ": " << error.what() << "\n" << text);
    }
  }
  // A sweep in which nothing is read tests only the parser.
  CHECK(accepted > rounds / 20);
}

TEST_CASE("fuzz: mutated graph files are refused or can be written and read again") {
  sweep(kJson, {"tests/fuzz/seeds", "tests/io/malformed/graph"}, fuzz_graph);
}

TEST_CASE("fuzz: mutated plan files are refused or can be written and read again") {
  sweep(kJson, {"tests/fuzz/seeds", "tests/io/malformed/plan"}, fuzz_plan);
}

TEST_CASE("fuzz: mutated HLO text is refused or is a graph that can be written and read again") {
  sweep(kHlo, {"tests/fuzz/hlo_seeds"}, fuzz_hlo);
}

}  // namespace
}  // namespace lowtide
