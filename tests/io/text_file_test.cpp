// Reading and writing whole files, compressed and not, and what can go wrong with files.
#include "lowtide/io/text_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lowtide/base/error.h"

#include "io/refusal.h"
#include "io/temporary_folder.h"

namespace lowtide {
namespace {

namespace fs = std::filesystem;

std::string raw(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST_CASE("text file: what is written is read, plain and compressed") {
  const TemporaryFolder folder;
  std::string large;
  for (int i = 0; i < 200000; ++i) large += std::to_string(i * 7919 % 100003);
  for (const std::string& text : {std::string(), std::string("x"), std::string("a\n\0b", 4), large})
    for (const char* name : {"plain.json", "packed.json.gz"}) {
      const std::string path = folder / name;
      io::write_text_file(path, text);
      CHECK(io::read_text_file(path) == text);
    }
  CHECK(raw(folder / "packed.json.gz").starts_with("\x1f\x8b"));
  CHECK(fs::file_size(folder / "packed.json.gz") < large.size() / 2);
}

TEST_CASE("text file: the first two bytes decide about compression, not the name") {
  const TemporaryFolder folder;
  put(folder / "packed.json", io::gzip("hello"));
  CHECK(io::read_text_file(folder / "packed.json") == "hello");
  put(folder / "plain.gz", "hello");
  CHECK(io::read_text_file(folder / "plain.gz") == "hello");
  put(folder / "two", io::gzip("hel") + io::gzip("lo"));
  CHECK(io::read_text_file(folder / "two") == "hello");
}

TEST_CASE("text file: equal texts give equal files") {
  const std::string packed = io::gzip("hello");
  CHECK(packed == io::gzip("hello"));
  CHECK(packed.substr(0, 10) == std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10));
}

TEST_CASE("text file: damaged and truncated gzip data give different errors") {
  const std::string packed = io::gzip(std::string(5000, 'x') + "y");
  const std::string cut_off = "the gzip data end too early: the file is cut off";
  for (std::size_t length = 2; length < packed.size(); ++length)
    CHECK(refusal_of([&] { io::gunzip(packed.substr(0, length)); }).reason == cut_off);
  for (std::size_t at = packed.size() - 8; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK(refusal_of([&] { io::gunzip(damaged); }).reason.starts_with("the gzip data are damaged"));
  }
  CHECK(refusal_of([&] { io::gunzip(packed + "rest"); }).reason.starts_with("the gzip data are"));
}

TEST_CASE("text file: more than the limit is refused, unpacked too") {
  const TemporaryFolder folder;
  put(folder / "large", "");
  fs::resize_file(folder / "large", io::kMaxTextBytes + 1);
  CHECK(refusal_of([&] { io::read_text_file(folder / "large"); }).reason ==
        "too large: more than 1073741824 bytes");
}

TEST_CASE("text file: files that cannot be read or written are named") {
  const TemporaryFolder folder;
  const std::string nowhere = folder / "no/such/file";
  CHECK(refusal_of([&] { io::read_text_file(nowhere); }) ==
        Refusal{nowhere, "", "cannot be read: No such file or directory"});
  CHECK(refusal_of([&] { io::read_text_file(folder.path()); }) ==
        Refusal{folder.path(), "", "cannot be read: Is a directory"});
  CHECK(refusal_of([&] { io::write_text_file(nowhere, "x"); }) ==
        Refusal{nowhere, "", "cannot be written: No such file or directory"});
  CHECK(refusal_of([&] { io::write_text_file(folder.path(), "x"); }) ==
        Refusal{folder.path(), "", "cannot be written: Is a directory"});
  put(folder / "damaged", "\x1f\x8b\x08 and so on");
  CHECK(refusal_of([&] { io::read_text_file(folder / "damaged"); }).file == folder / "damaged");
}

TEST_CASE("text file: replaced as a whole, with nothing left beside it") {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  io::write_text_file(path, "old");
  const std::ifstream reader(path);
  io::write_text_file(path, "new content");
  // Whoever has the old file open still sees all of it.
  CHECK(std::string(std::istreambuf_iterator<char>(reader.rdbuf()), {}) == "old");
  CHECK(raw(path) == "new content");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("text file: links, modes and special files survive a write") {
  const TemporaryFolder folder;
  put(folder / "target", "old");
  fs::permissions(folder / "target", fs::perms(0640));
  fs::create_symlink("target", folder / "link");
  io::write_text_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(raw(folder / "target") == "new");
  CHECK(fs::status(folder / "target").permissions() == fs::perms(0640));
  io::write_text_file("/dev/null", "nobody reads this");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("text file: standard input") {
  const TemporaryFolder folder;
  put(folder / "packed", io::gzip("from a pipe"));
  const int saved = ::dup(STDIN_FILENO);
  REQUIRE(std::freopen((folder / "packed").c_str(), "r", stdin) != nullptr);
  CHECK(io::read_text_file("-") == "from a pipe");
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  CHECK(io::name_of_file("-") == "standard input");
}

TEST_CASE("text file: an unwritable path is reported early, and no file is left") {
  const TemporaryFolder folder;
  put(folder / "old", "old");
  for (const std::string& path : {std::string(folder / "old"), std::string(folder / "new"),
                                  std::string("/dev/null"), std::string("-")})
    CHECK_NOTHROW(io::require_writable_file(path));
  CHECK(raw(folder / "old") == "old");
  CHECK_FALSE(fs::exists(folder / "new"));
  for (const std::string& path : {std::string(folder / "."), std::string(folder / "no/file"),
                                  std::string(folder / "old/file")})
    CHECK_THROWS_AS(io::require_writable_file(path), InputError);
  CHECK(io::may_be_replaced(folder / "old"));
  CHECK(io::may_be_replaced(folder / "new"));
  for (const char* path : {"", "-", "/dev/null"}) CHECK_FALSE(io::may_be_replaced(path));
}

}  // namespace
}  // namespace lowtide
