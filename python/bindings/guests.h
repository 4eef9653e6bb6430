// Parts of the solver `hiremate` that are objects of the caller: guests in its tables, for one
// call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/interface/solver.h"

#include "objects.h"

namespace lowtide::python {

struct Guest {
  std::string name;  // of its class; in its table nothing else is called so
  nb::object is;
};

class Guests {
 public:
  // Whether an option of a solver is one whose values may be objects.
  static bool may_be(const std::string& solver, std::string_view option);
  // The text of such an option: names, objects or a list of both. The objects become guests.
  // InputError for what is neither.
  std::string text_of_option(std::string_view option, nb::handle value);

  bool any() const { return !partitioners_.empty() || !block_solvers_.empty(); }
  // `hiremate` with all that it has of its own, and these. `graph` is what they are handed as it
  // is. With the interpreter lock held, here and where that ends.
  std::unique_ptr<solve::Solver> make_hiremate(const GraphObject& graph) const;

 private:
  std::string word(std::string_view option, nb::handle value);

  std::vector<Guest> partitioners_, block_solvers_;
};

// "None", or the name of its class: what something is, for messages.
std::string kind_of(nb::handle object);
// An op by its index, out of what a guest said: InputError (place: `place`) for what is none.
OpId op_from(nb::handle index, const Graph& graph, const std::string& place);
// The elements of what a guest returned; InputError if it has none because it is no list.
nb::iterator elements_of(nb::handle list, const std::string& place, const char* of);

std::unique_ptr<solve::partition::Partitioner> make_guest_partitioner(Guest guest,
                                                                      GraphObject graph);
std::unique_ptr<solve::hierarchy::BlockSolver> make_guest_block_solver(Guest guest,
                                                                       GraphObject graph);

}  // namespace lowtide::python
