// From the values of a pickle to a snapshot. Places are paths of keys and indices.
#include "lowtide/io/snapshot_pickle.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/io/pickle_read.h"
#include "lowtide/io/reader_support.h"
#include "lowtide/io/snapshot_names.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

using layout::SnapshotBlock;
using layout::SnapshotEvent;
using layout::SnapshotSegment;

// A value, and the way to it, which is made into text only where something is wrong.
struct At {
  Pickle::Value value;
  const At* parent = nullptr;
  std::string_view key = {};
  std::size_t index = 0;  // without a key

  std::string path() const {
    if (parent == nullptr) return {};
    const std::string above = parent->path();
    return (above.empty() ? above : above + "/") +
           (key.empty() ? std::to_string(index) : std::string(key));
  }
  [[noreturn]] void refuse(const std::string& why) const { throw InputError(path(), why); }
};

class SnapshotReader {
 public:
  explicit SnapshotReader(const Pickle& pickle) : pickle_(pickle) {}

  layout::Snapshot read() {
    const At root{pickle_.root()};
    if (pickle_.dict(root.value) == nullptr)
      root.refuse(
          "must be a dictionary with \"segments\" and \"device_traces\", as "
          "torch.cuda.memory._dump_snapshot() writes it");
    each(member(root, "segments"), [&](const At& at) { result_.segments.push_back(segment(at)); });
    each(member(root, "device_traces"), [&](const At& trace) {
      result_.traces.emplace_back();
      each(trace, [&](const At& at) { result_.traces.back().push_back(event(at)); });
    });
    read_settings(root);
    return std::move(result_);
  }

 private:
  std::optional<At> find(const At& at, std::string_view key) const {
    const Pickle::Dict* dict = pickle_.dict(at.value);
    if (dict == nullptr) at.refuse("must be a dictionary");
    for (std::size_t i = dict->items.size(); i-- > 0;)  // the last one counts
      if (pickle_.is_text(dict->items[i].first) && pickle_.text(dict->items[i].first) == key)
        return At{dict->items[i].second, &at, key};
    return std::nullopt;
  }
  At member(const At& at, std::string_view key) const {
    const auto found = find(at, key);
    if (!found) at.refuse(fmt::format("has no \"{}\"", key));
    return *found;
  }
  // Lists that are referred to many times must not make more of a file than it is.
  template <class Visit>
  void each(const At& at, Visit visit) {
    const Pickle::Sequence* list = pickle_.sequence(at.value);
    if (list == nullptr) at.refuse("must be a list");
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (++visited_ > kMostVisits * pickle_.size())
        at.refuse("refers to the same lists over and over");
      visit(At{list->items[i], &at, {}, i});
    }
  }
  std::int64_t integer(const At& at) const {
    const std::int64_t* value = pickle_.integer(at.value);
    if (value == nullptr) at.refuse("must be an integer below 2^63");
    return *value;
  }
  std::int64_t integer(const At& at, std::string_view key) const {
    return integer(member(at, key));
  }
  std::int64_t integer_or(const At& at, std::string_view key, std::int64_t absent) const {
    const auto found = find(at, key);
    return found ? integer(*found) : absent;
  }
  Bytes bytes(const At& at) const {
    const std::int64_t value = integer(at);
    if (value < 0 || value > kMostBytes)
      at.refuse(fmt::format("must be bytes from 0 to 2^56, not {}", value));
    return Bytes(value);
  }
  // Addresses of 2^63 and more do not occur; neither do sums of them and bytes overflow.
  std::int64_t address(const At& at) const {
    const std::int64_t value = integer(at);
    if (value < 0 || value > kMostAddress)
      at.refuse(fmt::format("must be an address from 0 to 2^62, not {}", value));
    return value;
  }
  std::string_view text(const At& at) const {
    if (!pickle_.is_text(at.value)) at.refuse("must be a text");
    return pickle_.text(at.value);
  }

  std::size_t stack(const At& owner) {
    const auto frames = find(owner, "frames");
    if (!frames) return 0;
    const auto [known, is_new] = stacks_of_.try_emplace(frames->value, 0);
    if (!is_new) return known->second;
    layout::Stack stack;
    std::string key;
    each(*frames, [&](const At& at) {
      const std::string_view name = text(member(at, "name")), file = text(member(at, "filename"));
      const std::int64_t line = integer(at, "line");
      stack.push_back({std::string(name), std::string(file), line});
      key += fmt::format("{}:{}{}:{}{}\n", name.size(), name, file.size(), file, line);
    });
    if (stack.empty()) return 0;
    const auto [same, is_other] = stacks_.try_emplace(std::move(key), result_.stacks.size());
    if (is_other) result_.stacks.push_back(std::move(stack));
    return stacks_of_[frames->value] = same->second;
  }

  SnapshotEvent event(const At& at) {
    SnapshotEvent event;
    const std::string_view action = text(member(at, "action"));
    const auto kind =
        std::ranges::find(kSnapshotActions, action, [](const auto& pair) { return pair.first; });
    event.stream = integer_or(at, "stream", 0);
    event.microseconds = integer_or(at, "time_us", 0);
    event.stack = stack(at);
    if (kind == kSnapshotActions.end()) return event;
    event.kind = kind->second;
    event.address = address(member(at, "addr"));
    event.bytes = bytes(member(at, "size"));
    return event;
  }

  SnapshotSegment segment(const At& at) {
    SnapshotSegment segment;
    segment.device = integer_or(at, "device", 0);
    segment.address = address(member(at, "address"));
    segment.bytes = bytes(member(at, "total_size"));
    segment.stream = integer_or(at, "stream", 0);
    if (const auto flag = find(at, "is_expandable")) {
      const bool* value = pickle_.boolean(flag->value);
      segment.is_expandable = value != nullptr && *value;
    }
    std::int64_t next = segment.address;
    const std::int64_t end = segment.address + segment.bytes.count();
    each(member(at, "blocks"), [&](const At& place) {
      SnapshotBlock block;
      block.bytes = bytes(member(place, "size"));
      const auto said = find(place, "address");
      block.address = said ? address(*said) : next;  // old snapshots say sizes alone
      if (block.address != next)
        place.refuse(
            fmt::format("begins at {}, but the block before it ends at {}", block.address, next));
      next += block.bytes.count();
      if (next > end)
        place.refuse(fmt::format("ends at {}, beyond its segment, which ends at {}", next, end));
      block.state = state(member(place, "state"));
      read_request(place, block);
      segment.blocks.push_back(block);
    });
    if (next != end) at.refuse(fmt::format("its blocks end at {}, the segment at {}", next, end));
    return segment;
  }

  // PyTorch 2.0 says what was requested, and where, in a history of the block, the latest first.
  void read_request(const At& place, SnapshotBlock& block) {
    const auto history = find(place, "history");
    const Pickle::Sequence* list = history ? pickle_.sequence(history->value) : nullptr;
    std::optional<At> latest;
    if (list != nullptr && !list->items.empty()) latest = At{list->items.front(), &*history, {}, 0};
    const auto requested = latest ? find(*latest, "real_size") : find(place, "requested_size");
    block.requested = requested ? bytes(*requested) : block.bytes;
    block.stack = stack(latest ? *latest : place);
  }

  SnapshotBlock::State state(const At& at) const {
    const std::string_view word = text(at);
    for (const auto& [name, state] : kSnapshotStates)
      if (name == word) return state;
    if (word == kAwaitingFree) return SnapshotBlock::State::awaiting_free;
    at.refuse(fmt::format("is {}; must be active_allocated, active_pending_free or inactive",
                          quoted(word)));
  }

  void read_settings(const At& root) {
    const auto settings = find(root, "allocator_settings");
    if (!settings || pickle_.dict(settings->value) == nullptr) return;
    for (const std::string_view key : {kAllocatorSettings, kSettingsOfAnyDevice})
      if (const auto said = find(*settings, key); said && pickle_.is_text(said->value))
        result_.allocator = pickle_.text(said->value);
  }

  static constexpr std::size_t kMostVisits = 4;  // of each value, at the mean
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;
  static constexpr std::int64_t kMostAddress = std::int64_t{1} << 62;

  const Pickle& pickle_;
  std::size_t visited_ = 0;
  std::unordered_map<Pickle::Value, std::size_t> stacks_of_;  // by their lists of frames
  std::unordered_map<std::string, std::size_t> stacks_;       // by their content
  layout::Snapshot result_;
};

}  // namespace

layout::Snapshot read_snapshot(const std::string& path) {
  return read_snapshot_text(read_text_file(path), name_of_file(path));
}

layout::Snapshot read_snapshot_text(std::string_view text, const std::string& file_name) {
  try {
    return SnapshotReader(Pickle(text)).read();
  } catch (const InputError& error) {
    throw error.in_file(file_name);
  }
}

}  // namespace lowtide::io
