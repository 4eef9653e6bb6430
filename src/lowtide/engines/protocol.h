// The protocol between library and worker: frames of a length (32 bits, little-endian) and a
// message in wire format. The library sends a request, the worker answers with reports; the last is
// `done` or `failed`. Then the worker waits for another request if the first one announced it, and
// otherwise ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/engines/engine.h"

namespace lowtide::engines {

struct EngineRequest {
  bool probe = false;  // only open the library and report its version
  EngineKind engine = EngineKind::cpsat;
  std::string library;
  std::string model, hint;  // a CpModelProto and its hint, or a MipModel
  double seconds = 0;       // 0: no limit
  double effort = 0;        // 0: no limit
  std::int64_t memory_bytes = 0;
  std::int64_t threads = 1;
  std::int64_t seed = 0;
  bool stream = false;  // solutions while it runs
  bool more = false;    // another request may follow

  std::string encode() const;
  static bool decode(std::string_view bytes, EngineRequest& into);
};

struct EngineReport {
  // `ready` comes first, before the library is opened.
  enum Kind { opened = 1, incumbent, objective, bound, done, failed, ready };
  Kind kind = failed;
  std::string text;                   // version or failure
  double value = 0;                   // objective or bound
  std::vector<std::int64_t> numbers;  // values of an incumbent
  std::vector<double> reals;
  EngineStatus status = EngineStatus::unknown;
  bool has_bound = false;
  double effort = 0;

  std::string encode() const;
  static bool decode(std::string_view bytes, EngineReport& into);
};

// Whether an objective or a bound is possible: not if it is beyond the integers.
inline bool is_sane(double value) { return value >= -0x1p62 && value <= 0x1p62; }

inline constexpr std::size_t kFrameHeader = 4;
// Larger frames are rejected.
inline constexpr std::uint64_t kMostFrame = std::uint64_t{1} << 30;
std::string frame_header(std::size_t size);
std::string frame(std::string_view message);
// Removes the first complete frame from the buffer, and stores it in `message`.
enum class Framed { none, whole, nonsense };
Framed take_frame(std::string& buffer, std::string& message);

}  // namespace lowtide::engines
