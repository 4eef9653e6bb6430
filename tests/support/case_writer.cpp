// Numbers, fixed words and nothing else: no string here needs escaping.
#include "support/case_writer.h"

#include <array>

#include "lowtide/graph/hash.h"

namespace lowtide {

namespace {

// "[a,b]" of whatever `write` says of each item.
template <class Items, class Write>
std::string list(const Items& items, Write write) {
  std::string text = "[";
  for (const auto& item : items) {
    if (text.size() > 1) text += ',';
    text += write(item);
  }
  return text + "]";
}

template <class Items>
std::string ids(const Items& items) {
  return list(items, [](auto id) { return std::to_string(id.index()); });
}

std::string field(std::string_view key, const std::string& value) {
  return "\"" + std::string(key) + "\":" + value;
}

std::string number(std::int64_t value) { return std::to_string(value); }
std::string truth(bool value) { return value ? "true" : "false"; }

std::string link_json(const Link& link) {
  return "{" + field("latency", number(link.latency.count())) + "," +
         field("bytes", number(link.bytes.count())) + "," +
         field("ticks", number(link.ticks.count())) + "}";
}

}  // namespace

std::string graph_json(const Graph& graph) {
  std::string text = "{\"format\":\"lowtide-graph\",\"version\":1,";
  text += field("resident_bytes", number(graph.resident().count()));
  text += ",\"tensors\":[";
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const Tensor& tensor = graph.tensor(TensorId(i));
    text += std::string(i == 0 ? "" : ",") + "{" + field("bytes", number(tensor.bytes.count())) +
            "," + field("releasable", truth(tensor.releasable)) + "," +
            field("stays", truth(tensor.stays)) + ",\"home\":\"" +
            std::string(to_string(tensor.home)) + "\"}";
  }
  text += "],\"ops\":[";
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    const Op& op = graph.op(id);
    text += std::string(i == 0 ? "" : ",") + "{" + field("inputs", ids(graph.inputs(id))) + "," +
            field("outputs", ids(graph.outputs(id))) + "," +
            field("time", number(op.time.count())) + "," +
            field("workspace", number(op.workspace.count())) + "," +
            field("recomputable", truth(op.recomputable)) + "," +
            field("after", ids(graph.after(id))) + "," + field("mutates", ids(graph.mutates(id))) +
            "," + field("in_place", list(graph.in_place(id), [](const InPlacePair& pair) {
                          return ids(std::array{pair.input, pair.output});
                        }));
    if (graph.on_network(id)) text += ",\"lane\":\"network\"";
    if (graph.is_barrier(id)) text += ",\"kind\":\"" + std::string(kBarrierKind) + "\"";
    text += "}";
  }
  return text + "]," + field("outputs", ids(graph.outputs())) + "," +
         field("order", ids(graph.order())) + "}";
}

std::string plan_json(const Problem& problem, const Plan& plan) {
  std::string text = "{\"format\":\"lowtide-plan\",\"version\":1,\"graph_hash\":\"" +
                     graph_hash(problem.graph) + "\",";
  text += field("budget", problem.budget == Bytes::max() ? "null" : number(problem.budget.count()));
  text += ",\"order\":\"" + std::string(to_string(problem.order)) + "\",";
  if (plan.machine)
    text += "\"machine\":{" + field("device_to_host", link_json(plan.machine->device_to_host)) +
            "," + field("host_to_device", link_json(plan.machine->host_to_device)) + "},";
  text += field("techniques", list(names_of(problem.techniques), [](std::string_view name) {
                  return "\"" + std::string(name) + "\"";
                }));
  if (problem.host_budget) text += "," + field("host_budget", number(problem.host_budget->count()));
  return text + "," +
         field("steps", list(plan.steps,
                             [&](const Step& step) {
                               std::string words = "[\"" + std::string(to_string(step.kind)) +
                                                   "\"," + number(step.index);
                               for (const TensorId gone : plan.overwritten(step))
                                 words += "," + std::to_string(gone.index());
                               return words + "]";
                             })) +
         "}";
}

void CaseWriter::write(const Problem& problem, const Plan& plan, const Verdict& verdict) {
  std::string hash = graph_hash(problem.graph);
  if (hash != latest_graph_) {
    out_ << "{" << field("graph", graph_json(problem.graph)) << ","
         << field("own_peak", number(own_peak(problem.graph).count())) << "}\n";
    latest_graph_ = std::move(hash);
  }
  // The end of the plan, and what concerns all of it, is step null for the other verifier.
  const bool at_step = verdict.violation && verdict.violation->step < plan.steps.size();
  out_ << "{" << field("plan", plan_json(problem, plan)) << ",\"verdict\":{"
       << field("ok", truth(verdict.ok)) << ","
       << field("step", at_step ? std::to_string(verdict.violation->step) : "null") << ","
       << field("peak", number(verdict.cost.peak.count())) << ","
       << field("duration", number(verdict.cost.duration.count())) << ","
       << field("host_peak", number(verdict.cost.host_peak.count())) << "}}\n";
}

}  // namespace lowtide
