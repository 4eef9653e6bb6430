// Plots and tables by hand, and what holds of every one of them: no line too wide, no peak lost.
#include "lowtide/report/plot.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

#include "support/scale.h"

namespace lowtide {
namespace {

std::vector<Bytes> bytes(const std::vector<std::int64_t>& values) {
  std::vector<Bytes> result;
  for (std::int64_t value : values) result.emplace_back(value);
  return result;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    REQUIRE(end != std::string_view::npos);  // every line ends
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

TEST_CASE("plot: a hill and a plan below it, in ASCII") {
  const auto own = bytes({1024, 2048, 4096, 2048}), plan = bytes({1024, 2048, 1024, 2048, 512});
  report::MemoryPlot plot{.run = {Bytes(0), plan}, .budget = Bytes(2048)};
  plot.before = report::MemoryProfile{Bytes(0), own};
  const std::vector<std::size_t> recomputed{3};
  plot.recomputed = recomputed;
  const report::TerminalStyle style{.width = 40, .height = 5, .colour = false, .unicode = false};
  CHECK(report::plot_memory(plot, style) == R"(   4 KiB +            v 4.00 KiB
         |            ......
2.00 KiB +------v 2.00 KiB -------------
         |      ######......######
       0 +########################______
         ++-----------+-----------------
          0           2          5 steps
                            ######
# plan   . unplanned   - budget 2.00 KiB
: recomputing
)");
}

TEST_CASE("plot: a budget that the plan uses to the last byte stays visible") {
  const auto plan = bytes(std::vector<std::int64_t>(1000, 777'777));
  for (std::size_t height = 4; height < 30; ++height) {
    report::MemoryPlot plot{.run = {Bytes(5), plan}, .budget = Bytes(777'777)};
    const auto lines = lines_of(report::plot_memory(plot, {.width = 60, .height = height}));
    const auto budget = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find(report::bytes_text(Bytes(777'777))) != std::string::npos;
    });
    REQUIRE(budget != lines.end());
    CHECK(budget->find("▁▁▁") != std::string::npos);
    CHECK(budget->find("█") == std::string::npos);
    CHECK((budget + 1)->find("█") != std::string::npos);
  }
}

TEST_CASE("plot: no line is wider than the terminal, whatever is drawn") {
  Random random(7);
  for (int round = 0; round < sanitized(300, 2000); ++round) {
    std::vector<Bytes> run, before;
    const auto draw = [&](std::vector<Bytes>& live) {
      const std::size_t steps = random.chance(0.2) ? random.below(3) : random.below(400);
      const std::int64_t most = std::int64_t{1} << random.below(63);
      for (std::size_t i = 0; i < steps; ++i) live.emplace_back(random.between(0, most));
    };
    draw(run);
    draw(before);
    const report::TerminalStyle style{.width = 30 + random.below(120),
                                      .height = random.below(25),
                                      .colour = false,
                                      .unicode = random.chance(0.5)};
    report::MemoryPlot plot{.run = {Bytes(random.between(0, 1000)), run}};
    if (random.chance(0.5)) plot.before = report::MemoryProfile{Bytes(0), before};
    if (random.chance(0.5)) plot.budget = Bytes(random.between(0, std::int64_t{1} << 40));
    std::vector<std::size_t> recomputed;
    for (std::size_t i = 0; i < run.size(); ++i)
      if (random.chance(0.1)) recomputed.push_back(i);
    plot.recomputed = recomputed;

    const std::string text = report::plot_memory(plot, style);
    Bytes peak = plot.run.start;
    for (Bytes live : run) peak = std::max(peak, live);
    CHECK(text.find(report::bytes_text(peak)) != std::string::npos);
    for (const std::string& line : lines_of(text)) {
      CHECK(report::columns_of(line) <= std::max<std::size_t>(style.width, 40));
      if (!style.unicode)
        CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    }
  }
}

TEST_CASE("plot: colour adds escape sequences and nothing else") {
  const auto live = bytes({5, 9, 1});
  const report::MemoryPlot plot{.run = {Bytes(0), live}, .budget = Bytes(9)};
  std::string coloured = report::plot_memory(plot, {.colour = true}), plain;
  for (std::size_t at = 0; at < coloured.size(); ++at) {
    if (coloured[at] == '\x1b')
      at = coloured.find('m', at);
    else
      plain += coloured[at];
  }
  CHECK(coloured.find("\x1b[") != std::string::npos);
  CHECK(plain == report::plot_memory(plot, {.colour = false}));
}

TEST_CASE("plot: sampling keeps the peak of every interval") {
  CHECK(report::sample_peaks({}, 5).empty());
  const auto live = bytes({3, 1, 4, 1, 5, 9, 2, 6});
  CHECK(report::sample_peaks(live, 0).empty());
  CHECK(report::sample_peaks(live, 1) == std::vector<std::size_t>{5});
  CHECK(report::sample_peaks(live, 4) == std::vector<std::size_t>{0, 2, 5, 7});
  CHECK(report::sample_peaks(live, 100) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(report::sample_peaks(bytes({7, 7, 7}), 1) == std::vector<std::size_t>{0});

  Random random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<Bytes> values;
    for (std::size_t i = 0, n = 1 + random.below(300); i < n; ++i)
      values.emplace_back(random.between(0, 1000));
    const auto peaks = report::sample_peaks(values, 1 + random.below(40));
    CHECK(std::is_sorted(peaks.begin(), peaks.end()));
    const Bytes most = *std::max_element(values.begin(), values.end());
    CHECK(
        std::any_of(peaks.begin(), peaks.end(), [&](std::size_t i) { return values[i] == most; }));
  }
}

TEST_CASE("plot: text is made safe for a terminal") {
  CHECK(report::clean_text("layer.0/conv ü 層") == "layer.0/conv ü 層");
  CHECK(report::clean_text("a\x1b[31mb\n\x7f") == "a\ufffd[31mb\ufffd\ufffd");
  CHECK(report::clean_text(std::string_view("a\0b", 3)) == "a\ufffdb");
  CHECK(report::clean_text("\u202egpj.exe\u2066") == "\ufffdgpj.exe\ufffd");
  CHECK(report::clean_text("\xff\xc3(\xe2\x82") == "\ufffd\ufffd(\ufffd\ufffd");
  CHECK(report::clean_text("\xc0\xaf\xed\xa0\x80") ==
        "\ufffd\ufffd\ufffd\ufffd\ufffd");  // overlong, half a pair
  CHECK(report::clean_text("ü層", false) == "??");
}

TEST_CASE("plot: names are shortened in the middle") {
  CHECK(report::columns_of("aü層e\u0301") == 5);
  CHECK(report::shorten("transformer.h.11.mlp", 20) == "transformer.h.11.mlp");
  CHECK(report::shorten("transformer.h.11.mlp", 12) == "trans…11.mlp");
  CHECK(report::shorten("transformer.h.11.mlp", 12, false) == "trans..1.mlp");
  CHECK(report::shorten("abc", 1) == "…");
  CHECK(report::shorten("abc", 1, false) == ".");
  CHECK(report::shorten("abc", 0).empty());
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string name;
    for (std::size_t i = 0, n = random.below(40); i < n; ++i)
      name += random.chance(0.3) ? "層" : random.chance(0.1) ? std::string(1, '\x90') : "a";
    const std::size_t columns = random.below(30);
    const bool unicode = random.chance(0.5);
    CHECK(report::columns_of(report::shorten(name, columns, unicode)) <= columns);
  }
}

TEST_CASE("plot: sentences are broken at spaces") {
  CHECK(report::wrap("", 9).empty());
  CHECK(report::wrap("one two  three", 9) == "one two\nthree\n");
  CHECK(report::wrap("a transformer.h.11.mlp b", 8) == "a\ntransfor\nmer.h.11\n.mlp b\n");
  CHECK(report::wrap("a\nb", 80) == "a\ufffdb\n");
}

TEST_CASE("plot: tables omit the least important columns") {
  const std::string name(60, 'n');
  const std::vector<report::TableColumn> columns{
      {"bytes", report::Align::right, false, 0, report::Ink::plain, {"1 B", "12 B"}},
      {"role", report::Align::left, false, 2, report::Ink::plain, {"activation", "input"}},
      {"tensor", report::Align::left, true, 0, report::Ink::plain, {name, "x"}},
      {"origin", report::Align::left, true, 1, report::Ink::plain, {name, ""}}};
  CHECK(report::draw_table(columns, {.width = 40, .unicode = false}) ==
        "  bytes  tensor          origin\n"
        "    1 B  nnnnnn..nnnnnn  nnnnnn..nnnnnnn\n"
        "   12 B  x\n");
}

}  // namespace
}  // namespace lowtide
