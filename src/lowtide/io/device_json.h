// Reads and writes device files (docs/reference/formats.md), and finds devices by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/device/device.h"
#include "lowtide/device/op_price.h"

namespace lowtide::io {

// InputError with the file's name and the place (a line, or a JSON pointer) for broken JSON,
// unknown or missing keys, and numbers that are not integers of at least 1 (0 for times).
Device read_device(const std::string& path);  // "-": standard input; gzip or plain
Device read_device_text(std::string_view text, const std::string& file_name);

// Writes the device in that format; reading it gives the same device.
std::string write_device(const Device& device);

// A built-in device by its name. A name with a slash or a dot in it, or "-", is a file to read.
// InputError (place: device "NAME") lists the names.
Device device_of(const std::string& name_or_path);

// The integer under "flops" in the op's attributes, if there is one: see StatedOperations.
// InputError (place: the op's name) if the value is not an integer.
std::optional<std::int64_t> stated_operations(const Op& op);

}  // namespace lowtide::io
