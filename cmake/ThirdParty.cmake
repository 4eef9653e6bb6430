# Everything here is private to .cpp files, so that none of it reaches whoever uses the package.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(fmt 8 REQUIRED)
if(LOWTIDE_TESTS)
  find_package(doctest 2.4 REQUIRED)
endif()

# fmt as headers alone is compiled again in every file that formats, half of what such a file takes. So it
# is compiled once, in io/fmt.cpp, where that file suits its version; in a namespace of ours, so that it
# is no second one beside that of whoever links us.
add_library(lowtide_fmt INTERFACE)
get_target_property(fmt_folders fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(lowtide_fmt SYSTEM INTERFACE ${fmt_folders})
set(fmt_once "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace lowtide {" "FMT_END_NAMESPACE=}}")
set(fmt_probe ${PROJECT_BINARY_DIR}/probe/use_fmt.cpp)
file(WRITE ${fmt_probe} [[
#include <iterator>
#include <vector>
#include <fmt/format.h>
int main(int argc, char**) {
  std::string text = fmt::format("{:>9.3f} {} {:,>8}", argc / 3.0, fmt::join(std::vector<int>{1, 2}, ","), "x");
  fmt::format_to(std::back_inserter(text), "{:.1f}{}{:x}", 1.5f, fmt::format_int(argc).str(), argc);
  fmt::print(stderr, "{}{}\n", text, fmt::to_string(argc));
}
]])
list(TRANSFORM fmt_once PREPEND -D OUTPUT_VARIABLE fmt_flags)
try_compile(LOWTIDE_FMT_ONCE ${PROJECT_BINARY_DIR}/probe/fmt
  SOURCES ${fmt_probe} ${PROJECT_SOURCE_DIR}/src/lowtide/base/fmt.cpp
  CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${fmt_folders}" COMPILE_DEFINITIONS ${fmt_flags}
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
if(LOWTIDE_FMT_ONCE)
  target_compile_definitions(lowtide_fmt INTERFACE ${fmt_once})
else()
  target_compile_definitions(lowtide_fmt INTERFACE FMT_HEADER_ONLY=1)
endif()
