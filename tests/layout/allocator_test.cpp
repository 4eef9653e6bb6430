// Each rule of the caching allocator by hand. Random traces against a second implementation are in
// tests/python/test_package_allocator.py.
#include <initializer_list>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/replay.h"
#include "lowtide/layout/allocator/sizes.h"

#include "support/print.h"

namespace lowtide::layout {
namespace {

using Kind = TraceEvent::Kind;

constexpr Bytes mib(std::int64_t count) { return Bytes(count << 20); }

TraceEvent take(std::int64_t id, Bytes bytes, Stream stream = 0) {
  return {Kind::allocate, id, bytes, stream};
}
TraceEvent drop(std::int64_t id) { return {Kind::free, id}; }

Replay run(std::string_view settings, const Trace& trace, std::optional<Bytes> memory = {}) {
  return replay(trace, parse_allocator_settings(settings), memory);
}

TEST_CASE("allocator: sizes of blocks and segments") {
  const AllocatorSettings plain;
  CHECK(block_size(Bytes(1), plain) == Bytes(512));
  CHECK(block_size(Bytes(512), plain) == Bytes(512));
  CHECK(block_size(Bytes(513), plain) == Bytes(1024));
  CHECK(segment_size(Bytes(512), plain) == mib(2));
  CHECK(segment_size(mib(1), plain) == mib(2));
  CHECK(segment_size(mib(1) + Bytes(512), plain) == mib(20));
  CHECK(segment_size(mib(10), plain) == mib(10));
  CHECK(segment_size(mib(10) + Bytes(512), plain) == mib(12));
  CHECK(segment_size(mib(2), parse_allocator_settings("large_segment_size_mb:12")) == mib(12));
}

TEST_CASE("allocator: sizes rounded up to parts of powers of two") {
  const AllocatorSettings quarters = parse_allocator_settings("roundup_power2_divisions:4");
  CHECK(block_size(Bytes(1200 << 10), quarters) == Bytes(1280 << 10));
  CHECK(block_size(Bytes(1024 << 10), quarters) == Bytes(1024 << 10));
  CHECK(block_size(Bytes(1025 << 10), quarters) == Bytes(1280 << 10));
  CHECK(block_size(Bytes(2048), quarters) == Bytes(2048));  // not above 4 times 512: by 512
  CHECK(block_size(Bytes(1100), quarters) == Bytes(1536));
  const AllocatorSettings one = parse_allocator_settings("roundup_power2_divisions:1");
  CHECK(block_size(Bytes(1025), one) == Bytes(1536));
  const AllocatorSettings some = parse_allocator_settings("roundup_power2_divisions:[2:1,8:2,>:4]");
  CHECK(block_size(mib(3) + Bytes(1), some) == mib(3) + Bytes(512));  // 2 to 4: 1
  CHECK(block_size(mib(5), some) == mib(5));                          // 4 to 8: not named
  CHECK(block_size(mib(9), some) == mib(12));                         // 8 to 16: halves
  CHECK(block_size(mib(17), some) == mib(20));                        // from 16 on: quarters
}

TEST_CASE("allocator: small blocks share a segment, large ones between 1 and 10 MiB too") {
  const Replay found = run("", {take(0, Bytes(100)), take(1, mib(1)), take(2, mib(1)),
                                take(3, mib(5)), take(4, mib(5))});
  CHECK(found.peaks.allocated == Bytes(512) + mib(12));
  CHECK(found.peaks.requested == Bytes(100) + mib(12));
  CHECK(found.peaks.reserved == mib(2) + mib(2) + mib(20));
  CHECK(found.counts.splits == 5);
  CHECK(found.counts.device_allocations == 3);
}

TEST_CASE("allocator: a block of a large segment is split if more than 1 MiB is left") {
  CHECK(run("", {take(0, mib(19))}).end.allocated.now == mib(20));
  CHECK(run("", {take(0, mib(19) - Bytes(512))}).end.allocated.now == mib(19) - Bytes(512));
  const Replay kept = run("", {take(0, mib(12)), drop(0), take(1, mib(11))});
  CHECK(kept.end.allocated.now == mib(12));
  const Replay cut = run("", {take(0, mib(12)), drop(0), take(1, mib(11) - Bytes(512))});
  CHECK(cut.end.allocated.now == mib(11) - Bytes(512));
  CHECK(cut.end.inactive_split.now == mib(1) + Bytes(512));
}

TEST_CASE("allocator: the best fit, and merging of neighbours") {
  // Segments of 16 and 12 MiB are free: 11 MiB take the smaller one.
  const Trace best = {take(0, mib(16)), take(1, mib(12)), drop(0),
                      drop(1),          take(2, mib(11)), take(3, mib(16))};
  CHECK(run("", best).peaks.reserved == mib(28));
  // Four of 4 MiB fill 16 of 20; freed from both sides they become one again.
  Trace merged;
  for (int i = 0; i < 5; ++i) merged.push_back(take(i, mib(4)));
  for (const int i : {0, 2, 4, 1, 3}) merged.push_back(drop(i));
  merged.push_back(take(9, mib(20)));
  const Replay found = run("", merged);
  CHECK(found.peaks.reserved == mib(20));
  CHECK(found.counts.merges == 4);
  CHECK(found.end.inactive_split.now == Bytes(0));
  CHECK(found.peaks.inactive_split == mib(16));
}

TEST_CASE("allocator: streams have pools of their own") {
  const Replay found = run("", {take(0, mib(12), 1), drop(0), take(1, mib(12), 2)});
  CHECK(found.peaks.reserved == mib(24));
}

TEST_CASE("allocator: a block that another stream uses waits for it") {
  Trace trace = {take(0, mib(12)), {Kind::use_on, 0, {}, 1}, drop(0), take(1, mib(12))};
  const Replay waits = run("", trace);
  CHECK(waits.peaks.reserved == mib(24));
  CHECK(waits.peaks.allocated == mib(12));
  CHECK(waits.peaks.active == mib(24));
  CHECK(waits.counts.waits == 1);
  trace.insert(trace.begin() + 3, {Kind::finish, 0, {}, 1});
  CHECK(run("", trace).peaks.reserved == mib(12));
  // Use on its own stream is none.
  trace = {take(0, mib(12)), {Kind::use_on, 0, {}, 0}, drop(0), take(1, mib(12))};
  CHECK(run("", trace).counts.waits == 0);
}

TEST_CASE("allocator: what is cached goes back when memory runs out") {
  const Trace trace = {take(0, mib(12)), drop(0), take(1, mib(14))};
  const Replay found = run("", trace, mib(20));
  CHECK_FALSE(found.out_of_memory);
  CHECK(found.counts.retries == 1);
  CHECK(found.counts.device_frees == 1);
  CHECK(found.end.reserved.now == mib(14));
  CHECK(run("", trace, mib(26)).counts.retries == 0);
}

TEST_CASE("allocator: part of a segment in use keeps it, and memory runs out") {
  const Replay found =
      run("", {take(0, mib(4)), take(1, mib(12)), drop(1), take(2, mib(30))}, mib(40));
  REQUIRE(found.out_of_memory);
  CHECK(found.out_of_memory->event == 3);
  CHECK(found.out_of_memory->requested == mib(30));
  CHECK(found.out_of_memory->reserved == mib(20));
  CHECK(found.counts.retries == 1);
}

TEST_CASE("allocator: max_split_size_mb keeps large segments whole") {
  // 40 MiB are not cut for 30, but serve 39, which is within 20 of it.
  const Trace smaller = {take(0, mib(40)), drop(0), take(1, mib(12))};
  CHECK(run("", smaller).peaks.reserved == mib(40));
  const Replay refused = run("max_split_size_mb:32", smaller);
  CHECK(refused.peaks.reserved == mib(52));
  CHECK(refused.counts.oversize_refusals == 1);
  const Trace near = {take(0, mib(60)), drop(0), take(1, mib(42))};
  CHECK(run("max_split_size_mb:32", near).end.allocated.now == mib(60));
  const Trace far = {take(0, mib(64)), drop(0), take(1, mib(42))};
  CHECK(run("max_split_size_mb:32", far).peaks.reserved == mib(106));
  CHECK(run("max_split_size_mb:32,max_non_split_rounding_mb:23", far).peaks.reserved == mib(64));
}

TEST_CASE("allocator: segments above max_split_size_mb go back before all that is cached") {
  const Trace trace = {take(0, mib(40)), take(1, mib(12)), drop(0), drop(1), take(2, mib(16))};
  const Replay found = run("max_split_size_mb:32", trace, mib(60));
  CHECK(found.counts.oversize_frees == 1);
  CHECK(found.counts.retries == 0);
  CHECK(found.end.reserved.now == mib(28));
}

TEST_CASE("allocator: garbage collection gives back what was not used for long") {
  Trace trace = {take(0, mib(40)), take(1, mib(20)), drop(0), drop(1)};
  for (int i = 0; i < 4; ++i) {
    trace.push_back(take(1, mib(20)));
    trace.push_back(drop(1));
  }
  trace.push_back(take(2, mib(50)));
  const std::string settings = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5";
  const Replay found = run(settings, trace, mib(220));
  CHECK(found.counts.collected == 1);
  CHECK(found.end.reserved.now == mib(70));
  CHECK(run(settings, trace, mib(400)).counts.collected == 0);
  // Only below the whole memory.
  CHECK(run("garbage_collection_threshold:0.5", trace, mib(110)).counts.collected == 0);
}

TEST_CASE("allocator: a share of an unknown memory is refused") {
  CHECK_THROWS_AS(run("per_process_memory_fraction:0.5", {}), InputError);
}

TEST_CASE("allocator: expandable segments grow by pages") {
  const Replay found = run("expandable_segments:True", {take(0, mib(12)), take(1, mib(12)),
                                                        take(2, Bytes(100)), take(3, mib(40))});
  CHECK(found.peaks.reserved == mib(80) + mib(2));
  CHECK(found.counts.device_allocations == 4);
  CHECK(found.end.inactive_split.now == Bytes(0));
  // Freed in the middle, grown at the end: 24 MiB do not fit between two blocks.
  const Trace grows = {take(0, mib(20)), take(1, mib(20)), take(2, mib(20)), drop(1),
                       take(3, mib(24))};
  CHECK(run("expandable_segments:True", grows).peaks.reserved == mib(100));
  CHECK(run("expandable_segments:True,large_segment_size_mb:12", grows).peaks.reserved == mib(84));
}

TEST_CASE("allocator: pages of expandable segments are unmapped when memory runs out") {
  const Trace trace = {take(0, mib(50)), take(1, mib(20)), drop(0), take(2, mib(60))};
  const Replay found = run("expandable_segments:True", trace, mib(100));
  CHECK_FALSE(found.out_of_memory);
  CHECK(found.counts.retries == 1);
  CHECK(found.counts.unmaps == 1);  // two pages of the 50 MiB; the third is in use at its end
  CHECK(found.end.reserved.now == mib(100));
  CHECK(found.end.allocated.now == mib(80));
}

TEST_CASE("allocator: steps have peaks of their own") {
  const Replay found = run("", {take(0, mib(12)),
                                {Kind::end_step},
                                take(1, mib(14)),
                                drop(1),
                                {Kind::end_step},
                                {Kind::empty_cache},
                                {Kind::end_step},
                                drop(0)});
  REQUIRE(found.steps.size() == 4);
  CHECK(found.steps[0].reserved == mib(12));
  CHECK(found.steps[1].allocated == mib(26));
  CHECK(found.steps[2].reserved == mib(26));
  CHECK(found.steps[3].reserved == mib(12));
  CHECK(found.peaks.allocated == mib(26));
}

TEST_CASE("allocator: events that make no sense are refused with their number") {
  const auto refused = [](const Trace& trace) -> std::string {
    try {
      run("", trace);
    } catch (const InputError& error) {
      return error.place();
    }
    return "";
  };
  CHECK(refused({drop(1)}) == "event 0");
  CHECK(refused({take(1, mib(1)), take(1, mib(1))}) == "event 1");
  CHECK(refused({take(1, mib(1)), drop(1), drop(1)}) == "event 2");
  CHECK(refused({take(1, Bytes(0))}) == "event 0");
  CHECK(refused({{Kind::use_on, 3}}) == "event 0");
}

}  // namespace
}  // namespace lowtide::layout
