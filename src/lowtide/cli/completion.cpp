// `lowtide completion SHELL`: a script made from the very table of commands and flags that the
// command itself parses with, so that it cannot fall behind.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/cli/commands.h"

namespace lowtide::cli {

namespace {

struct Flag {
  std::string name, usage;
  bool takes_value = false;
  std::vector<std::string> values;
};
struct Command {
  std::string name, usage;
  std::vector<Flag> flags;
};

// The words of a check such as CLI::IsMember: "{a,b}" in its description.
std::vector<std::string> words_of(const std::string& type) {
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> words;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t comma = std::min(type.find(',', at), close);
    words.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Command command{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      Flag flag{"", option->get_description(), option->get_items_expected_max() > 0,
                words_of(option->get_type_name())};
      for (const std::string& name : option->get_lnames()) flag.name = "--" + name;
      if (flag.name.empty())
        for (const std::string& name : option->get_snames()) flag.name = "-" + name;
      command.flags.push_back(std::move(flag));  // a positional has no name, but may have values
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += command.name + " ";
    std::string flags, values;
    for (const Flag& flag : command.flags) {
      if (flag.name.empty()) {
        flags += fmt::format("{} ", fmt::join(flag.values, " "));
        continue;
      }
      flags += flag.name + " ";
      if (!flag.values.empty())
        values +=
            fmt::format("        {}) words='{}' ;;\n", flag.name, fmt::join(flag.values, " "));
      else if (flag.takes_value)
        values += fmt::format("        {}) words= ;;\n", flag.name);
    }
    cases += fmt::format(
        "    {}) words='{}'\n      case \"$previous\" in\n{}        *) ;;\n      esac ;;\n",
        command.name, flags, values);
  }
  return fmt::format(
      "# bash completion for lowtide\n"
      "_lowtide() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='{}'; else\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _lowtide lowtide\n",
      names, cases);
}

std::string zsh(const std::vector<Command>& commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    names += "    " + quoted(command.name + ":" + command.usage) + "\n";
    std::string specs;
    for (const Flag& flag : command.flags) {
      const std::string action = flag.values.empty()
                                     ? std::string("_files")
                                     : fmt::format("({})", fmt::join(flag.values, " "));
      std::string usage;
      for (char c : flag.usage)
        usage += c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
      const std::string spec = flag.name.empty()
                                   ? "*:argument:" + action
                                   : flag.name + "[" + usage + "]" +
                                         (flag.takes_value ? ":value:" + action : std::string());
      specs += " " + quoted(spec);
    }
    cases += fmt::format("    {}) _arguments{} ;;\n", command.name, specs);
  }
  return fmt::format(
      "#compdef lowtide\n"
      "_lowtide() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = _lowtide ]; then _lowtide \"$@\"; else compdef _lowtide lowtide; "
      "fi\n",
      names, cases);
}

std::string fish(const std::vector<Command>& commands) {
  std::string out = "# fish completion for lowtide\n";
  for (const Command& command : commands) {
    out += fmt::format("complete -c lowtide -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       quoted(command.usage));
    for (const Flag& flag : command.flags) {
      if (flag.name.empty() && flag.values.empty()) continue;
      out += fmt::format("complete -c lowtide -n '__fish_seen_subcommand_from {}'", command.name);
      if (flag.name.starts_with("--"))
        out += fmt::format(" -l {} -d {}", flag.name.substr(2), quoted(flag.usage));
      else if (!flag.name.empty())
        out += fmt::format(" -s {} -d {}", flag.name.substr(1), quoted(flag.usage));
      if (!flag.name.empty() && flag.takes_value) out += " -r";
      if (!flag.values.empty())
        out += " -f -a " + quoted(fmt::format("{}", fmt::join(flag.values, " ")));
      out += "\n";
    }
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "bash: source <(lowtide completion bash)\n"
      "zsh:  source <(lowtide completion zsh)\n"
      "fish: lowtide completion fish | source");
  command->callback([&app, shell, &status] {
    const auto commands = commands_of(app);
    fmt::print("{}", *shell == "bash"  ? bash(commands)
                     : *shell == "zsh" ? zsh(commands)
                                       : fish(commands));
    status = 0;
  });
}

}  // namespace lowtide::cli
