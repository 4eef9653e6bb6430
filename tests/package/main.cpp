#include <iostream>

#include "lowtide/graph/builder.h"
#include "lowtide/sim/simulate.h"

int main() {
  lowtide::GraphBuilder builder;
  const auto tensor = builder.add_tensor({.name = "x", .bytes = lowtide::Bytes(8)});
  builder.add_op({.name = "make x"}, {}, {tensor});
  builder.add_output(tensor);
  std::cout << "peak: " << lowtide::own_peak(builder.build()).count() << " bytes\n";
}
