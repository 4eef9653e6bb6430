// fastest GRAPH BUDGET LINK: the least duration of any plan of a tiny graph in its given order
// within so many bytes over a link to the host (25GB/s,10us), by brute force. Prints it, or "none".
#include <charconv>
#include <iostream>
#include <string_view>

#include "lowtide/base/error.h"
#include "lowtide/io/graph_json.h"

#include "oracles/brute_force_transfers.h"

int main(int argc, char** argv) {
  using namespace lowtide;
  std::int64_t budget = 0;
  const std::string_view bytes = argc == 4 ? argv[2] : "";
  const auto read = std::from_chars(bytes.data(), bytes.data() + bytes.size(), budget);
  if (bytes.empty() || read.ec != std::errc{} || read.ptr != bytes.data() + bytes.size()) {
    std::cerr << "usage: fastest GRAPH BYTES LINK\n";
    return 2;
  }
  try {
    const Graph graph = io::read_graph(argv[1]).graph;
    const oracle::Link link{Order::given, machine_of(parse_link(argv[3]), graph.tick())};
    if (const auto found = oracle::fastest(graph, link, Bytes(budget)))
      std::cout << found->duration.count() << '\n';
    else
      std::cout << "none\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
