// One reader for each key.
#include "lowtide/layout/allocator/settings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "lowtide/layout/allocator/settings_text.h"

namespace lowtide::layout {

namespace {

// Keys that do not change what the device's memory holds, but whose values PyTorch checks.
constexpr std::array<std::string_view, 8> kSwitches = {
    "release_lock_on_cudamalloc",    "release_lock_on_hipmalloc",
    "pinned_use_cuda_host_register", "pinned_use_hip_host_register",
    "pinned_use_background_threads", "pinned_free_catch_all",
    "throw_on_cudamalloc_oom",       "graph_capture_record_stream_reuse"};

Bytes mebibytes(SettingsText& text, Bytes least) {
  const auto smallest = static_cast<std::uint64_t>(least.count() / kMiB.count());
  const std::uint64_t given = text.number();
  if (given < smallest) text.refuse("at least " + std::to_string(smallest) + " (MiB)");
  constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX / kMiB.count() / 2);
  return Bytes(static_cast<std::int64_t>(std::min(given, kMost)) * kMiB.count());
}

// A number of divisions beyond this rounds no size there is.
std::int64_t bounded(std::uint64_t divisions) {
  return static_cast<std::int64_t>(std::min(divisions, std::uint64_t{1} << 40));
}

// One number for all sizes, or [256:1,512:2,>:4]: for sizes in MiB. Sizes below the first have its
// number; sizes between two have none.
void read_divisions(SettingsText& text, AllocatorSettings& settings) {
  auto& of = settings.roundup_divisions;
  if (!text.is("[")) {
    const std::uint64_t given = text.number();
    if (!std::has_single_bit(given)) text.refuse("a power of two, or a list [256:1,512:2,>:4]");
    of.fill(bounded(given));
    return;
  }
  text.mark("[");
  std::size_t last = 0;
  for (bool first = true; !text.is("]");) {
    const bool rest = text.is(">");
    if (rest) text.mark(">");
    const std::uint64_t size = rest ? 1 : text.number();
    if (!std::has_single_bit(size)) text.refuse("a power of two, in MiB, or >");
    text.mark(":");
    const std::uint64_t given = text.number();
    if (given != 0 && !std::has_single_bit(given)) text.refuse("0 or a power of two");
    if (rest) {
      std::fill(of.begin() + static_cast<std::ptrdiff_t>(last) + 1, of.end(), bounded(given));
    } else {
      last = std::min(of.size(), static_cast<std::size_t>(std::bit_width(size))) - 1;
      if (first) std::fill_n(of.begin(), last, bounded(given));
      of.at(last) = bounded(given);
      first = false;
    }
    if (!text.is("]")) text.mark(",");
  }
  text.mark("]");
}

void read_backend(SettingsText& text) {
  const std::string given = text.word("native");
  if (given == "cudaMallocAsync" || given == "hipMallocAsync")
    text.refuse("native: the driver's own allocator is not modelled");
  if (given != "native") text.refuse("native");
}

void read_value(SettingsText& text, const std::string& key, AllocatorSettings& settings) {
  if (key == "expandable_segments") {
    settings.expandable_segments = text.boolean();
  } else if (key == "large_segment_size_mb") {
    settings.large_segment = mebibytes(text, Bytes(11 * kMiB.count()));
  } else if (key == "max_split_size_mb") {
    settings.max_split_size = mebibytes(text, settings.large_segment);
  } else if (key == "max_non_split_rounding_mb") {
    settings.max_non_split_rounding = mebibytes(text, settings.large_segment);
  } else if (key == "roundup_power2_divisions") {
    read_divisions(text, settings);
  } else if (key == "garbage_collection_threshold") {
    constexpr std::string_view kRange = "a number above 0 and below 1";
    const double given = settings.garbage_collection_threshold = text.fraction(kRange);
    if (!(given > 0 && given < 1)) text.refuse(kRange);
  } else if (key == "per_process_memory_fraction") {
    constexpr std::string_view kRange = "a number from 0 to 1";
    const double given = settings.memory_fraction = text.fraction(kRange);
    if (!(given >= 0 && given <= 1)) text.refuse(kRange);
  } else if (key == "backend") {
    read_backend(text);
  } else if (std::ranges::find(kSwitches, key) != kSwitches.end()) {
    text.boolean();
  } else if (key == "pinned_num_register_threads") {
    const std::uint64_t threads = text.number();
    if (!std::has_single_bit(threads) || threads > 128) text.refuse("a power of two up to 128");
  } else if (key == "pinned_reserve_segment_size_mb") {
    if (text.number() == 0) text.refuse("more than 0");
  } else if (key == "pinned_max_round_threshold_mb" || key == "pinned_max_cached_size_mb") {
    text.number();
  } else {
    text.refuse_key(
        "expandable_segments, large_segment_size_mb, max_split_size_mb, max_non_split_rounding_mb, "
        "roundup_power2_divisions, garbage_collection_threshold, per_process_memory_fraction, and "
        "those of PyTorch that do not change what the device's memory holds");
  }
}

void append(std::string& text, std::string_view key, const std::string& value) {
  if (!text.empty()) text += ',';
  text.append(key) += ':' + value;
}

std::string in_mebibytes(Bytes bytes) { return std::to_string(bytes.count() / kMiB.count()); }

std::string divisions_text(const AllocatorSettings& settings) {
  const auto& of = settings.roundup_divisions;
  if (of.front() != 0 && std::ranges::count(of, of.front()) == std::ssize(of))
    return std::to_string(of.front());
  std::string list;
  for (std::size_t i = 0; i < of.size(); ++i)
    list += (i == 0 ? "" : ",") + std::to_string(1 << i) + ":" + std::to_string(of.at(i));
  return "[" + list + "]";
}

// The fewest digits that read back as the same number.
std::string digits(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace

AllocatorSettings parse_allocator_settings(std::string_view given) {
  SettingsText text(given);
  AllocatorSettings settings;
  // The smallest values of other keys depend on large_segment_size_mb, wherever it stands.
  for (const bool segment_size : {true, false}) {
    for (text.rewind(); !text.at_end();) {
      const std::string key = text.key();
      if (segment_size && key != "large_segment_size_mb")
        text.skip_value();
      else
        read_value(text, key, settings);
      if (!text.at_end()) text.mark(",");
    }
  }
  return settings;
}

std::string to_string(const AllocatorSettings& settings) {
  const AllocatorSettings defaults;
  std::string text;
  if (settings.expandable_segments) append(text, "expandable_segments", "True");
  if (settings.large_segment != defaults.large_segment)
    append(text, "large_segment_size_mb", in_mebibytes(settings.large_segment));
  if (settings.max_split_size)
    append(text, "max_split_size_mb", in_mebibytes(*settings.max_split_size));
  if (settings.max_non_split_rounding != defaults.max_non_split_rounding)
    append(text, "max_non_split_rounding_mb", in_mebibytes(settings.max_non_split_rounding));
  if (settings.roundup_divisions != defaults.roundup_divisions)
    append(text, "roundup_power2_divisions", divisions_text(settings));
  if (settings.garbage_collection_threshold != 0)
    append(text, "garbage_collection_threshold", digits(settings.garbage_collection_threshold));
  if (settings.memory_fraction != 1)
    append(text, "per_process_memory_fraction", digits(settings.memory_fraction));
  return text;
}

}  // namespace lowtide::layout
