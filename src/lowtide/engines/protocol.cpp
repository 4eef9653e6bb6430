// Both sides belong to one build, so fields need no compatibility.
#include "lowtide/engines/protocol.h"

#include "lowtide/base/error.h"
#include "lowtide/engines/wire.h"

namespace lowtide::engines {

std::string EngineRequest::encode() const {
  WireWriter out;
  out.number(1, probe).number(2, static_cast<std::int64_t>(engine)).text(3, library);
  out.text(4, model).text(5, hint).real(6, seconds).real(7, effort).number(8, memory_bytes);
  return out.number(9, threads).number(10, seed).number(11, stream).number(12, more).bytes();
}

bool EngineRequest::decode(std::string_view bytes, EngineRequest& into) {
  into = {};
  WireReader in(bytes);
  while (in.next()) switch (in.field()) {
      case 1: into.probe = in.number() != 0; break;
      case 2: into.engine = static_cast<EngineKind>(in.number()); break;
      case 3: into.library = in.text(); break;
      case 4: into.model = in.text(); break;
      case 5: into.hint = in.text(); break;
      case 6: into.seconds = in.real(); break;
      case 7: into.effort = in.real(); break;
      case 8: into.memory_bytes = in.number(); break;
      case 9: into.threads = in.number(); break;
      case 10: into.seed = in.number(); break;
      case 11: into.stream = in.number() != 0; break;
      case 12: into.more = in.number() != 0; break;
    }
  return in.ok();
}

std::string EngineReport::encode() const {
  WireWriter out;
  out.number(1, kind).text(2, text).real(3, value).numbers(4, numbers).reals(5, reals);
  return out.number(6, static_cast<std::int64_t>(status))
      .number(7, has_bound)
      .real(8, effort)
      .bytes();
}

bool EngineReport::decode(std::string_view bytes, EngineReport& into) {
  into = {};
  WireReader in(bytes);
  std::int64_t kind = 0, status = 0;
  while (in.next()) switch (in.field()) {
      case 1: kind = in.number(); break;
      case 2: into.text = in.text(); break;
      case 3: into.value = in.real(); break;
      case 4: in.numbers(into.numbers); break;
      case 5: in.reals(into.reals); break;
      case 6: status = in.number(); break;
      case 7: into.has_bound = in.number() != 0; break;
      case 8: into.effort = in.real(); break;
    }
  if (!in.ok() || kind < opened || kind > ready || status < 0 || status > 3) return false;
  into.kind = static_cast<Kind>(kind);
  into.status = static_cast<EngineStatus>(status);
  return true;
}

std::string frame_header(std::size_t size) {
  check(size <= kMostFrame, "a message that is too large was to be sent");
  std::string out;
  for (std::size_t i = 0; i < kFrameHeader; ++i) out += static_cast<char>(size >> (8 * i) & 0xff);
  return out;
}

std::string frame(std::string_view message) { return frame_header(message.size()).append(message); }

Framed take_frame(std::string& buffer, std::string& message) {
  if (buffer.size() < kFrameHeader) return Framed::none;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < kFrameHeader; ++i)
    size |= static_cast<std::uint64_t>(static_cast<unsigned char>(buffer[i])) << (8 * i);
  if (size > kMostFrame) return Framed::nonsense;
  if (buffer.size() < kFrameHeader + size) return Framed::none;
  message = buffer.substr(kFrameHeader, size);
  buffer.erase(0, kFrameHeader + size);
  return Framed::whole;
}

}  // namespace lowtide::engines
