// Bytes and times are small enough to follow with a pencil.
#include "solve/cases.h"

#include "lowtide/graph/generate.h"

#include "support/sketch.h"

namespace lowtide {

namespace {

// Forward a chain, a barrier, backward reads it from its end: what training looks like.
Graph training_step() {
  return Sketch({4, 4, 4, 1, 1, 1, 1})
      .op({}, {0}, 3)
      .op({0}, {1}, 3)
      .op({1}, {2}, 3)
      .op({2}, {3}, 0)
      .barrier()
      .op({3, 2}, {4}, 6)
      .op({4, 1}, {5}, 6)
      .op({5, 0}, {6}, 6)
      .keep({6})
      .graph();
}

}  // namespace

std::vector<Case> small_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const Graph& graph) {
    cases.push_back({std::move(name), graph});
  };
  add("nothing at all", Sketch({}).graph());
  add("resident bytes alone", Sketch({}).resident(7).graph());
  add("inputs and no ops", Sketch({5, 0, 3}).releasable({0}).keep({2}).graph());
  add("one op without inputs and outputs", Sketch({}).op({}, {}, 5).graph());
  add("one op that takes no time", Sketch({4}).op({}, {0}, 0).keep({0}).graph());
  add("tensors without bytes", Sketch({0, 0, 0}).op({0}, {1}).op({1}, {2}).op({1, 2}, {}).graph());
  add("a chain",
      Sketch({5, 5, 5, 5}).op({}, {0}).op({0}, {1}).op({1}, {2}).op({2}, {3}).keep({3}).graph());
  add("a skip connection", Sketch({4, 4, 4, 1})
                               .op({}, {0}, 5)
                               .op({0}, {1}, 3)
                               .op({1}, {2}, 2)
                               .op({2, 0}, {3})
                               .keep({3})
                               .graph());
  add("a skip connection from an op that runs once", Sketch({4, 4, 4, 1})
                                                         .op({}, {0}, 5)
                                                         .once()
                                                         .op({0}, {1}, 3)
                                                         .op({1}, {2}, 2)
                                                         .op({2, 0}, {3})
                                                         .keep({3})
                                                         .graph());
  add("overwritten, and made again right before its maker's input is changed",
      Sketch({3, 3, 3, 2, 4})
          .op({2}, {1}, 9)
          .op({2, 1}, {0})
          .workspace(6)
          .in_place({{2, 0}, {1, 0}})
          .op({2, 1}, {3})
          .mutates({2})
          .op({1}, {4}, 8)
          .keep({2, 3, 4})
          .order({0, 3, 1, 2})
          .graph());
  add("a training step", training_step());
  add("two branches, the order decides", Sketch({10, 10, 1, 1, 1})
                                             .op({}, {0}, 4)
                                             .once()
                                             .op({}, {1}, 4)
                                             .once()
                                             .op({0}, {2})
                                             .op({1}, {3})
                                             .op({2, 3}, {4})
                                             .keep({4})
                                             .graph());
  add("a large output of two, of which the small one is kept for long", Sketch({9, 1, 6, 6, 1})
                                                                            .op({}, {0, 1}, 4)
                                                                            .op({0}, {2})
                                                                            .op({2}, {3})
                                                                            .op({3, 1}, {4})
                                                                            .keep({4})
                                                                            .graph());
  add("a releasable input, read at both ends", Sketch({8, 2, 8, 1})
                                                   .op({0}, {1})
                                                   .op({1}, {2})
                                                   .op({2, 0}, {3})
                                                   .releasable({0})
                                                   .keep({3})
                                                   .graph());
  add("a releasable input that nothing reads",
      Sketch({8, 8}).op({}, {1}).releasable({0}).keep({1}).graph());
  add("an input that is an output and releasable",
      Sketch({8, 8}).op({0}, {1}).releasable({0}).keep({0, 1}).graph());
  add("a workspace larger than all tensors", Sketch({3, 3, 3})
                                                 .op({}, {0}, 2)
                                                 .op({0}, {1}, 2)
                                                 .workspace(20)
                                                 .op({0, 1}, {2}, 2)
                                                 .keep({2})
                                                 .graph());
  add("a kept output that is recomputed in between",
      Sketch({6, 6, 6}).op({}, {0}, 1).op({0}, {1}, 5).op({1}, {2}, 5).keep({0, 2}).graph());
  add("an update in place at the end",
      Sketch({5, 4, 4}).op({0}, {1}, 3).op({1}, {2}, 3).op({0, 2}, {}, 1).mutates({0}).graph());
  add("a kept tensor changed in place, whose maker has another output", Sketch({4, 4, 4, 4})
                                                                            .op({}, {0, 1}, 3)
                                                                            .op({0}, {}, 1)
                                                                            .mutates({0})
                                                                            .op({1}, {2}, 3)
                                                                            .op({1, 2}, {3}, 3)
                                                                            .keep({0, 3})
                                                                            .order({0, 1, 2, 3})
                                                                            .graph());
  add("order by after alone", Sketch({3, 3, 3})
                                  .op({}, {0})
                                  .op({}, {1})
                                  .after({0})
                                  .op({}, {2})
                                  .after({1})
                                  .keep({0, 1, 2})
                                  .graph());
  add("sinks that nobody keeps",
      Sketch({3, 9, 3, 9}).op({}, {0}).op({0}, {1}).op({0}, {2}).op({2}, {3}).graph());
  add("an op that lists its input twice",
      Sketch({4, 4, 4}).op({}, {0}).op({0, 0}, {1}).op({0, 1, 0}, {2}).keep({2}).graph());
  add("the listing is not the order",
      Sketch({4, 4, 4}).op({1}, {2}).op({0}, {1}).op({}, {0}).keep({2}).order({2, 1, 0}).graph());
  add("everything once", Sketch({4, 4, 4, 4})
                             .op({}, {0})
                             .once()
                             .op({0}, {1})
                             .once()
                             .op({0, 1}, {2})
                             .once()
                             .op({0, 2}, {3})
                             .once()
                             .keep({3})
                             .graph());
  // Only two more computations together help, and either alone costs time: no plan was found as
  // long as every lane of the search was cold.
  add("two tensors that must go at once", Sketch({4, 4, 5, 10, 9, 0, 0})
                                              .resident(3)
                                              .op({6}, {0}, 4)
                                              .op({}, {3, 6, 4}, 9)
                                              .op({3, 0}, {2, 1, 5}, 3)
                                              .op({6}, {}, 4)
                                              .once()
                                              .keep({0, 1, 2, 4, 5, 6})
                                              .order({1, 3, 0, 2})
                                              .graph());
  add("an order that no single shift comes to", Sketch({4, 1, 10, 10, 6, 9})
                                                    .op({}, {0}, 5)
                                                    .op({0}, {1}, 4)
                                                    .once()
                                                    .op({0}, {2}, 2)
                                                    .op({0}, {3}, 6)
                                                    .once()
                                                    .op({2}, {4}, 4)
                                                    .once()
                                                    .op({4}, {5}, 2)
                                                    .once()
                                                    .keep({1, 5})
                                                    .graph());
  // `auto` gave up, since its first epoch was in the given order alone.
  add("a budget that the given order cannot keep", Sketch({8, 7, 0, 5, 3, 1, 1, 3, 0, 3})
                                                       .resident(7)
                                                       .op({0, 1}, {2}, 5)
                                                       .op({1}, {3}, 1)
                                                       .op({}, {4, 5}, 2)
                                                       .op({4, 5}, {6}, 9)
                                                       .once()
                                                       .op({1, 4}, {7, 8}, 9)
                                                       .op({0}, {9}, 9)
                                                       .workspace(2)
                                                       .keep({2, 6})
                                                       .graph());
  return cases;
}

std::vector<Case> large_cases(std::size_t ops) {
  std::vector<Case> cases;
  for (const std::string_view kind : generator_kinds())
    cases.push_back({std::string(kind), generate(kind, ops, 1)});
  return cases;
}

}  // namespace lowtide
