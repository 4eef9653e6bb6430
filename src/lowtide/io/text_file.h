// Reads and writes whole files. Another process sees either the old content or the new, never a
// mix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide::io {

// The longest text that is read from one file, unpacked. A graph takes 200 to 400 bytes an op.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;

// The content of a file, unpacked if its first two bytes say that it is gzip-compressed, whatever
// its name. "-" is standard input. InputError naming the file if it cannot be read, if the gzip
// data are damaged or cut off, or if the text is larger than kMaxTextBytes.
std::string read_text_file(const std::string& path);

// A file's name in messages: its path, or "standard input".
std::string name_of_file(const std::string& path);

// Writes a file beside `path` and renames it. If `path` ends in ".gz" the file is compressed, with
// a header that holds neither time nor name, so that equal texts give equal files. "-" is standard
// output. A special file (a pipe, /dev/null) is written directly. Of a symbolic link, the target is
// replaced. InputError naming the file if that fails; then the old content remains.
void write_text_file(const std::string& path, std::string_view text);

// Whether writing to `path` makes or replaces a regular file, so that it can be repeated. False for
// standard output, a pipe, /dev/null and an empty path.
bool may_be_replaced(const std::string& path);

// Makes and removes a file where write_text_file would write, so that an error comes before the
// work is done. "-" passes. InputError naming the file.
void require_writable_file(const std::string& path);

// The same compression in memory, both ways. InputError if `packed` is not a complete gzip file.
std::string gzip(std::string_view text);
std::string gunzip(std::string_view packed);

}  // namespace lowtide::io
