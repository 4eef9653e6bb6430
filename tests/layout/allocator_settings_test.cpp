#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/settings.h"

namespace lowtide::layout {
namespace {

AllocatorSettings parse(std::string_view text) { return parse_allocator_settings(text); }

// What is said of a string that is refused.
std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(std::string_view text, std::initializer_list<std::string_view> parts) {
  const std::string found = refusal(text);
  for (const std::string_view part : parts)
    if (found.find(part) == std::string::npos) {
      MESSAGE(found);
      return false;
    }
  return true;
}

TEST_CASE("allocator settings: each key") {
  CHECK(parse("") == AllocatorSettings());
  CHECK(parse("expandable_segments:True").expandable_segments);
  CHECK_FALSE(parse("expandable_segments:True,expandable_segments:False").expandable_segments);
  CHECK(parse("max_split_size_mb:128").max_split_size == Bytes(128 << 20));
  CHECK(parse("max_non_split_rounding_mb:40").max_non_split_rounding == Bytes(40 << 20));
  CHECK(parse("large_segment_size_mb:12").large_segment == Bytes(12 << 20));
  CHECK(parse("garbage_collection_threshold:0.8").garbage_collection_threshold == 0.8);
  CHECK(parse("per_process_memory_fraction:0.9").memory_fraction == 0.9);
  CHECK(parse("roundup_power2_divisions:8").roundup_divisions.back() == 8);
  CHECK(parse(" max_split_size_mb : 1 28 , ").max_split_size == Bytes(128 << 20));
}

TEST_CASE("allocator settings: a list of divisions") {
  const auto of = parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_divisions;
  CHECK(of[0] == 1);
  CHECK(of[8] == 1);
  CHECK(of[9] == 2);
  CHECK(of[10] == 4);
  CHECK(of[11] == 8);
  CHECK(of[15] == 8);
  CHECK(parse("roundup_power2_divisions:[256:2,1024:4]").roundup_divisions[9] == 0);
  CHECK(parse("roundup_power2_divisions:[1048576:2]").roundup_divisions[15] == 2);
  CHECK(parse("roundup_power2_divisions:[]") == AllocatorSettings());
}

TEST_CASE("allocator settings: keys of the host and of the driver change nothing") {
  CHECK(parse("backend:native,pinned_use_background_threads:True,pinned_num_register_threads:8,"
              "release_lock_on_cudamalloc:False,pinned_use_cuda_host_register:True,"
              "pinned_reserve_segment_size_mb:64,throw_on_cudamalloc_oom:True,"
              "graph_capture_record_stream_reuse:True") == AllocatorSettings());
}

TEST_CASE("allocator settings: what is refused is named, with its place and what would be right") {
  CHECK(says("max_split_size_mb:19", {"character 19", "max_split_size_mb", "\"19\"", "20"}));
  CHECK(says("large_segment_size_mb:10", {"11"}));
  CHECK(says("max_split_size_mb:30,large_segment_size_mb:40", {"max_split_size_mb", "40"}));
  CHECK(says("max_split_size_mb:many", {"many", "whole number"}));
  CHECK(says("max_split_size_mb:21x", {"21x", "whole number"}));
  CHECK(says("max_split_size_mb:-1", {"whole number"}));
  CHECK(says("max_split_size_mb:99999999999999999999", {"whole number"}));
  CHECK(says("max_split_size_mb", {"max_split_size_mb", "\":\""}));
  CHECK(says("max_split_size_mb:", {"max_split_size_mb", "ends"}));
  CHECK(says("max_split_size_mb=20", {"\":\""}));
  CHECK(says("max_split_size_mb,20", {"\":\"", "character 18"}));
  CHECK(says("expandable_segments:true", {"True or False", "\"true\""}));
  CHECK(says("expandable_segment:True", {"expandable_segment", "not known", "character 1:"}));
  CHECK(says("expandable_segments:True,size:3", {"character 26", "size"}));
  CHECK(says(",expandable_segments:True", {"\",\""}));
  CHECK(says("expandable_segments:True,,max_split_size_mb:30", {"a key"}));
  CHECK(says("expandable_segments:True max_split_size_mb:30", {"Truemax_split_size_mb", "\",\""}));
  CHECK(says("garbage_collection_threshold:1", {"above 0 and below 1"}));
  CHECK(says("garbage_collection_threshold:nan", {"above 0 and below 1"}));
  CHECK(says("per_process_memory_fraction:1.5", {"from 0 to 1"}));
  CHECK(says("roundup_power2_divisions:3", {"power of two"}));
  CHECK(says("roundup_power2_divisions:[256:3]", {"power of two"}));
  CHECK(says("roundup_power2_divisions:[100:2]", {"\"100\"", "power of two"}));
  CHECK(says("roundup_power2_divisions:[256:1", {"\"]\"", "character 32"}));
  CHECK(says("roundup_power2_divisions:[256:1;512:2]", {"whole number"}));
  CHECK(says("backend:cudaMallocAsync", {"not modelled"}));
  CHECK(says("backend:other", {"native"}));
  CHECK(says("pinned_num_register_threads:3", {"power of two"}));
}

TEST_CASE("allocator settings: as text they read back") {
  for (const std::string text :
       {"", "expandable_segments:True", "large_segment_size_mb:12,max_split_size_mb:13",
        "max_split_size_mb:128,max_non_split_rounding_mb:40,roundup_power2_divisions:4",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.95"})
    CHECK(to_string(parse(text)) == text);
  const AllocatorSettings list = parse("roundup_power2_divisions:[256:1,512:2,>:8]");
  CHECK(parse(to_string(list)) == list);
}

}  // namespace
}  // namespace lowtide::layout
