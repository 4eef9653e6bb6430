// Compression of whole strings with zlib.
#include <algorithm>
#include <limits>

#include <zlib.h>

#include "lowtide/base/error.h"
#include "lowtide/io/text_file.h"

namespace lowtide::io {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr int kWindow = 15, kGzip = 16;  // zlib's codes: the largest window, gzip's header

[[noreturn]] void refuse(const std::string& reason) { throw InputError("", reason); }

Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

// Gives the stream its next input; zlib counts in 32 bits.
void feed(z_stream& stream, std::string_view& left) {
  if (stream.avail_in > 0) return;
  const std::size_t size = std::min<std::size_t>(left.size(), std::numeric_limits<uInt>::max());
  stream.next_in = bytes_of(left);
  stream.avail_in = static_cast<uInt>(size);
  left.remove_prefix(size);
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, kWindow + kGzip) != Z_OK) refuse("zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

struct Deflater {
  z_stream stream{};
  gz_header header{};
  Deflater() {
    header.os = 255;  // unknown: the same on every machine
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindow + kGzip, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        deflateSetHeader(&stream, &header) != Z_OK)
      refuse("zlib does not start");
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
};

}  // namespace

std::string gunzip(std::string_view packed) {
  std::string text, chunk(kChunk, '\0');
  Inflater inflater;
  z_stream& stream = inflater.stream;
  while (true) {
    feed(stream, packed);
    stream.next_out = bytes_of(chunk);
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    text.append(chunk, 0, chunk.size() - stream.avail_out);
    if (text.size() > static_cast<std::size_t>(kMaxTextBytes))
      refuse("too large: more than " + std::to_string(kMaxTextBytes) + " bytes unpacked");
    if (code == Z_STREAM_END) {
      feed(stream, packed);
      if (stream.avail_in == 0) return text;
      // The format allows several compressed files in a row: together they are one.
      if (inflateReset(&stream) != Z_OK) refuse("zlib does not start again");
    } else if (code == Z_BUF_ERROR ||
               (code == Z_OK && stream.avail_in == 0 && packed.empty() && stream.avail_out > 0)) {
      refuse("the gzip data end too early: the file is cut off");
    } else if (code == Z_MEM_ERROR) {
      refuse("not enough memory to unpack it");
    } else if (code != Z_OK) {
      refuse("the gzip data are damaged" +
             (stream.msg != nullptr ? " (" + std::string(stream.msg) + ")" : std::string()));
    }
  }
}

std::string gzip(std::string_view text) {
  std::string packed, chunk(kChunk, '\0');
  Deflater deflater;
  z_stream& stream = deflater.stream;
  for (int code = Z_OK; code != Z_STREAM_END;) {
    feed(stream, text);
    stream.next_out = bytes_of(chunk);
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    check(code == Z_OK || code == Z_STREAM_END, "deflate goes on");
    packed.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  return packed;
}

}  // namespace lowtide::io
