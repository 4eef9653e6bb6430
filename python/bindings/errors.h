// What goes wrong, as Python exceptions with the command's words.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace lowtide::python {

// A plan that does not hold. Becomes PlanError, with the step at fault as its attribute.
class PlanRefused : public std::runtime_error {
 public:
  PlanRefused(const std::string& reason, std::optional<std::size_t> step)
      : std::runtime_error(reason), step_(step) {}
  std::optional<std::size_t> step() const { return step_; }

 private:
  std::optional<std::size_t> step_;
};

// A plan for another graph. Becomes WrongGraphError.
class WrongGraph : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lowtide::python
