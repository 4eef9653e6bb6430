// Device files in and out (docs/reference/formats.md), and devices by the name that users give.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/device/device.h"
#include "lowtide/device/op_price.h"

namespace lowtide::io {

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON,
// unknown keys, what is missing, and numbers that are no whole ones of 1 or more (0 for times).
Device read_device(const std::string& path);  // "-": standard input; gzip or plain
Device read_device_text(std::string_view text, const std::string& file_name);

// The device in that format; reading it gives the same.
std::string write_device(const Device& device);

// A built-in device by its name; what looks like a file (a slash or a point in it, or "-") is read.
// InputError (place: device "NAME") lists the names.
Device device_of(const std::string& name_or_path);

// The whole number that the op's attributes say under "flops", if they do: StatedOperations.
// InputError (place: the op's name) for one that is none.
std::optional<std::int64_t> stated_operations(const Op& op);

}  // namespace lowtide::io
