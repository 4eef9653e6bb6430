// lowtide/graph/generate.h
#include "lowtide/graph/generate.h"

#include "lowtide/base/error.h"

#include "objects.h"

namespace lowtide::python {

namespace {

constexpr std::int64_t kMostOps = 10'000'000;

GraphObject make(const std::string& kind, std::int64_t ops, std::uint64_t seed,
                 std::optional<double> width) {
  if (ops < 1 || ops > kMostOps)
    throw InputError("ops " + std::to_string(ops), "is not from 1 to " + std::to_string(kMostOps));
  if (width && kind != "layered") throw InputError("width", "only layered graphs have one");
  const nb::gil_scoped_release released;
  const auto count = static_cast<std::size_t>(ops);
  LayeredSettings layered;
  if (width) layered.width = *width;
  return make_graph(kind == "layered" ? generate_layered(count, seed, layered)
                                      : generate(kind, count, seed));
}

}  // namespace

void bind_generate(nb::module_& module) {
  module.def("generate", &make, nb::arg("kind"), nb::arg("ops") = 1000, nb::kw_only(),
             nb::arg("seed") = 0, nb::arg("width") = nb::none(),
             "Generate a graph of about `ops` ops: \"layered\" (with a `width` of layers from 0.01 "
             "to 0.99), \"chain\", \"resnet\", \"unet\" or \"transformer\".\n\nThe same seed gives "
             "the same graph.");
}

}  // namespace lowtide::python
