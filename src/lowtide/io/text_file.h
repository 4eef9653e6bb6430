// Files whole: read at once, written so that whoever reads sees the old content or the new.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide::io {

// No more text than this is read from one file, unpacked. A graph takes 200 to 400 bytes an op.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;

// The content of a file, unpacked if it is gzip-compressed (told by its first two bytes, whatever
// its name). "-" is standard input. InputError naming the file: it cannot be opened or read, the
// gzip data are damaged or cut off, the text is larger than kMaxTextBytes.
std::string read_text_file(const std::string& path);

// What messages call a file: its path, or "standard input".
std::string name_of_file(const std::string& path);

// Writes a file beside `path` and renames it; compressed if `path` ends in ".gz", with a header
// that holds neither time nor name, so that equal texts give equal files. "-" is standard output;
// what is no regular file (a pipe, /dev/null) is written directly; of a symbolic link, the target
// is replaced. InputError naming the file if that fails; then the old content stands.
void write_text_file(const std::string& path, std::string_view text);

// Whether writing there replaces a file or makes one, so that it may be done more than once: not to
// standard output, a pipe or /dev/null, and not to an empty path.
bool may_be_replaced(const std::string& path);

// Makes and removes a file where write_text_file would: what it would refuse, before the work is
// done. "-" passes. InputError naming the file.
void require_writable_file(const std::string& path);

// The same compression in memory, both ways. InputError if `packed` is no whole gzip file.
std::string gzip(std::string_view text);
std::string gunzip(std::string_view packed);

}  // namespace lowtide::io
