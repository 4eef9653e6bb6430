// Buffers to place, in minimalloc's format: a header, then one buffer a line.
//
//   id,lower,upper,size[,offset]
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/layout/buffer.h"

namespace lowtide::io {

struct BuffersFile {
  std::vector<std::string> ids;
  std::vector<layout::Buffer> buffers;
};

// Columns in any order; `offset` is read and forgotten. InputError with the file's name and the
// line: a column that is missing, unknown or there twice, a line of another number of fields, what
// is no integer, a buffer that does not end after it begins, a negative size, an id there twice.
BuffersFile read_buffers(const std::string& path);  // "-": standard input; gzip or plain
BuffersFile read_buffers_text(std::string_view text, const std::string& file_name);

// With the offsets, one for each buffer, if there are any.
std::string write_buffers(const BuffersFile& file, std::span<const Bytes> offsets = {});

}  // namespace lowtide::io
