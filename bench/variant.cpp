// Problem: to measure `auto` with an option of a part set, or without a part.
//
// Idea: whoever calls a part asks it for its table of options and takes the defaults from there. So
// a part behind another table of defaults is the variant, and no solver has to know.
//
// Loses: an option that the caller of a part sets by itself is not changed.
#include "bench/variant.h"

#include <algorithm>
#include <cstdlib>

#include "lowtide/base/error.h"
#include "lowtide/solve/interface/forwarding.h"

namespace lowtide::bench {

namespace {

class Preset final : public solve::Forwarding {
 public:
  explicit Preset(const solve::Solver& solver)
      : solve::Forwarding(solver),
        solver_(solver),
        specs_(solver.options().begin(), solver.options().end()) {}

  void set(const std::string& option, const std::string& value) {
    solve::Options(solver_.options()).set(option, value);  // throws if there is no such thing
    for (solve::OptionSpec& spec : specs_) {
      if (spec.name != option) continue;
      if (spec.choices.empty())
        spec.default_number = std::strtod(value.c_str(), nullptr);
      else
        spec.default_choice = *std::find(spec.choices.begin(), spec.choices.end(), value);
    }
  }

  std::span<const solve::OptionSpec> options() const override { return specs_; }

 private:
  const solve::Solver& solver_;
  std::vector<solve::OptionSpec> specs_;
};

std::vector<Variant> switches(const solve::Solver& solver) {
  std::vector<Variant> variants;
  for (const solve::OptionSpec& spec : solver.options()) {
    const auto has = [&](std::string_view word) {
      return std::find(spec.choices.begin(), spec.choices.end(), word) != spec.choices.end();
    };
    if (!has("on") || !has("off")) continue;
    const std::string_view other = spec.default_choice == "on" ? "off" : "on";
    variants.push_back(
        {{std::string(solver.name()) + "." + std::string(spec.name) + "=" + std::string(other)},
         {}});
  }
  return variants;
}

void demand_solver(const solve::SolverTable& solvers, const std::string& name) {
  if (solvers.find(name) == nullptr)
    throw InputError("solver \"" + name + "\"", "there is none of that name");
}

}  // namespace

std::string Variant::label() const {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : " ") + option;
  for (const std::string& solver : without)
    text += (text.empty() ? "without " : " without ") + solver;
  return text.empty() ? "base" : text;
}

solve::SolverTable vary(const solve::SolverTable& solvers, const Variant& variant) {
  for (const std::string& name : variant.without) demand_solver(solvers, name);
  solve::SolverTable varied;
  std::vector<Preset*> presets;
  for (const auto& solver : solvers.all()) {
    const bool left_out = std::find(variant.without.begin(), variant.without.end(),
                                    solver->name()) != variant.without.end();
    if (left_out) continue;
    auto preset = std::make_unique<Preset>(*solver);
    presets.push_back(preset.get());
    varied.add(std::move(preset));
  }
  for (const std::string& option : variant.options) {
    const std::size_t dot = option.find('.'), equals = option.find('=');
    if (dot == std::string::npos || equals == std::string::npos || equals < dot)
      throw InputError("option \"" + option + "\"", "wants solver.name=value");
    const std::string name = option.substr(0, dot);
    demand_solver(varied, name);
    for (Preset* preset : presets)
      if (preset->name() == name)
        preset->set(option.substr(dot + 1, equals - dot - 1), option.substr(equals + 1));
  }
  return varied;
}

std::vector<Variant> ablations(const solve::SolverTable& solvers, const std::string& solver) {
  demand_solver(solvers, solver);
  const solve::Solver& asked = *solvers.find(solver);
  if (!asked.traits().has(solve::Trait::portfolio)) return switches(asked);
  std::vector<Variant> variants = switches(asked);
  for (const auto& part : solvers.all()) {
    if (part->name() == solver) continue;
    variants.push_back({{}, {std::string(part->name())}});
    for (Variant& variant : switches(*part)) variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace lowtide::bench
