// lowtide/layout/allocator/replay.h. Events are tuples that begin with their kind.
#include "replay.h"

#include <array>
#include <string>
#include <string_view>

#include "lowtide/base/error.h"
#include "lowtide/plan/budget.h"

#include "convert.h"
#include "objects.h"

namespace lowtide::python {

namespace {

using layout::Trace;
using layout::TraceEvent;

// A kind, and which of `id`, `bytes` and `stream` stand behind it. The stream may be left out of an
// allocation.
struct Form {
  std::string_view kind;
  TraceEvent::Kind value;
  std::string_view fields;
};
constexpr std::array<Form, 6> kForms = {{{"allocate", TraceEvent::Kind::allocate, "ibs"},
                                         {"free", TraceEvent::Kind::free, "i"},
                                         {"use_on", TraceEvent::Kind::use_on, "is"},
                                         {"finish", TraceEvent::Kind::finish, "s"},
                                         {"empty_cache", TraceEvent::Kind::empty_cache, ""},
                                         {"end_step", TraceEvent::Kind::end_step, ""}}};

TraceEvent event_of(nb::handle given, std::size_t index) {
  const auto refuse = [&] {
    throw InputError(
        "event " + std::to_string(index),
        "must be (\"allocate\", id, bytes[, stream]), (\"free\", id), (\"use_on\", id, "
        "stream), (\"finish\", stream), (\"empty_cache\",) or (\"end_step\",)");
  };
  if (!nb::isinstance<nb::tuple>(given) && !nb::isinstance<nb::list>(given)) refuse();
  const nb::object parts = nb::borrow(given);
  const std::size_t count = nb::len(parts);
  if (count == 0 || !nb::isinstance<nb::str>(parts[0])) refuse();
  const std::string_view kind = text_of(nb::object(parts[0]));
  for (const Form& form : kForms) {
    if (form.kind != kind) continue;
    const bool stream_left_out = form.value == TraceEvent::Kind::allocate && count == 3;
    if (count != form.fields.size() + 1 && !stream_left_out) refuse();
    TraceEvent event{form.value};
    for (std::size_t i = 1; i < count; ++i) {
      std::int64_t value = 0;
      if (!nb::try_cast(nb::object(parts[i]), value)) refuse();
      switch (form.fields[i - 1]) {
        case 'i': event.id = value; break;
        case 'b': event.bytes = Bytes(value); break;
        default:
          if (value < 0 || value > INT32_MAX) refuse();
          event.stream = static_cast<layout::Stream>(value);
      }
    }
    return event;
  }
  refuse();
  return {TraceEvent::Kind::end_step};
}

nb::dict run(nb::iterable given, const std::string& allocator, nb::handle memory,
             bool every_event) {
  const layout::AllocatorSettings settings = layout::parse_allocator_settings(allocator);
  const std::optional<Bytes> limit = memory_of(memory);
  Trace trace;
  for (const nb::handle event : given) trace.push_back(event_of(event, trace.size()));
  std::vector<layout::ReplayedEvent> events;
  layout::Replay found;
  {
    const nb::gil_scoped_release released;
    found = layout::replay(trace, settings, limit, every_event ? &events : nullptr);
  }
  nb::dict dict;
  dict["peaks"] = peaks_dict(found.peaks);
  dict["steps"] = steps_list(found);
  dict["end"] = peaks_dict({found.end.allocated.now, found.end.active.now, found.end.requested.now,
                            found.end.reserved.now, found.end.inactive_split.now});
  dict["counts"] = counts_dict(found.counts);
  dict["out_of_memory"] = out_of_memory_or_none(found);
  if (every_event) {
    nb::list list;
    for (const layout::ReplayedEvent& event : events)
      list.append(nb::make_tuple(if_any(event.address >= 0, event.address), event.allocated.count(),
                                 event.reserved.count()));
    dict["events"] = list;
  }
  return dict;
}

}  // namespace

nb::dict peaks_dict(const layout::Peaks& peaks) {
  nb::dict dict;
  dict["allocated"] = peaks.allocated.count();
  dict["active"] = peaks.active.count();
  dict["requested"] = peaks.requested.count();
  dict["reserved"] = peaks.reserved.count();
  dict["inactive_split"] = peaks.inactive_split.count();
  return dict;
}

nb::list steps_list(const layout::Replay& replay) {
  nb::list list;
  for (const layout::Peaks& step : replay.steps) list.append(peaks_dict(step));
  return list;
}

nb::dict counts_dict(const layout::AllocatorCounts& counts) {
  nb::dict dict;
  dict["allocations"] = counts.allocations;
  dict["splits"] = counts.splits;
  dict["merges"] = counts.merges;
  dict["device_allocations"] = counts.device_allocations;
  dict["device_frees"] = counts.device_frees;
  dict["retries"] = counts.retries;
  dict["unmaps"] = counts.unmaps;
  dict["collected"] = counts.collected;
  dict["oversize_frees"] = counts.oversize_frees;
  dict["oversize_refusals"] = counts.oversize_refusals;
  dict["waits"] = counts.waits;
  return dict;
}

nb::object out_of_memory_or_none(const layout::Replay& replay) {
  if (!replay.out_of_memory) return nb::none();
  nb::dict dict;
  dict["event"] = replay.out_of_memory->event;
  dict["requested"] = replay.out_of_memory->requested.count();
  dict["allocated"] = replay.out_of_memory->allocated.count();
  dict["reserved"] = replay.out_of_memory->reserved.count();
  return dict;
}

std::optional<Bytes> memory_of(nb::handle memory) {
  if (memory.is_none()) return {};
  std::int64_t bytes = 0;
  if (nb::isinstance<nb::str>(memory))
    bytes = parse_size(text_of(memory), "memory").count();
  else if (!nb::try_cast(memory, bytes))
    throw nb::type_error("memory must be None, an int (bytes) or a str such as \"24GiB\"");
  if (bytes < 0) throw InputError("memory " + std::to_string(bytes), "must be 0 or more");
  return Bytes(bytes);
}

void bind_replay(nb::module_& module) {
  module.def(
      "replay_allocations", &run, nb::arg("events"), nb::arg("allocator") = "",
      nb::arg("memory") = nb::none(), nb::arg("every_event") = false,
      nb::sig("def replay_allocations(events: collections.abc.Iterable[tuple[str | int, ...]], "
              "allocator: str = '', memory: int | str | None = None, every_event: bool = False) -> "
              "dict[str, typing.Any]"),
      "Replay allocations under the model of PyTorch's caching allocator for CUDA.\n\nEvents are "
      "`(\"allocate\", id, bytes[, stream])`, `(\"free\", id)`, `(\"use_on\", id, stream)`, "
      "`(\"finish\", stream)`, `(\"empty_cache\",)`, `(\"end_step\",)`. `allocator` is a string as "
      "in PYTORCH_ALLOC_CONF, `memory` what the device has. The dict has the `peaks` of all and of "
      "each of the `steps`, the state at the `end`, `counts` of what the allocator did, and "
      "`out_of_memory`; with `every_event`, for each event the address, and the bytes allocated "
      "and reserved after it.");
}

}  // namespace lowtide::python
