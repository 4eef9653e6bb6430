# One label besides its kind: `quick` is what `make test` runs from this build folder.
add_custom_target(lowtide_quick)
get_filename_component(LOWTIDE_BUILD_NAME ${PROJECT_BINARY_DIR} NAME)

function(lowtide_labels out target)
  set(labels ${ARGN})
  foreach(label IN LISTS labels)
    if(label IN_LIST LOWTIDE_QUICK)
      list(APPEND labels quick)
      if(target)
        add_dependencies(lowtide_quick ${target})
      endif()
      break()
    endif()
  endforeach()
  set(${out} "${labels}" PARENT_SCOPE)
endfunction()

# GCC 12's thread sanitizer cannot start where the kernel spreads addresses too far.
function(lowtide_find_test_launcher)
  if(NOT LOWTIDE_SANITIZE MATCHES thread OR DEFINED LOWTIDE_TEST_LAUNCHER)
    return()
  endif()
  set(probe ${PROJECT_BINARY_DIR}/probe.cpp)
  file(WRITE ${probe} "int main() {}\n")
  try_compile(built ${PROJECT_BINARY_DIR}/probe ${probe} COPY_FILE ${PROJECT_BINARY_DIR}/probe.out)
  set(launcher NONE)
  foreach(candidate "" "setarch;-R")
    execute_process(COMMAND ${candidate} ${PROJECT_BINARY_DIR}/probe.out
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(built AND failed STREQUAL "0")
      set(launcher ${candidate})
      break()
    endif()
  endforeach()
  if(launcher STREQUAL "NONE")
    message(WARNING "The thread sanitizer does not start on this machine: its tests will fail")
    set(launcher "")
  endif()
  set(LOWTIDE_TEST_LAUNCHER "${launcher}" CACHE STRING "What test programs are started with")
endfunction()
lowtide_find_test_launcher()

# The engines that tools/deps has installed; tests that need them leave out what is not there.
file(GLOB LOWTIDE_TEST_CPSAT
     ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/ortools/.libs/libortools.so.9)
file(GLOB LOWTIDE_TEST_HIGHS
     ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/highsbox/highs_dist/lib/libhighs.so)
set(LOWTIDE_TEST_ENVIRONMENT "")
foreach(engine CPSAT HIGHS)
  if(LOWTIDE_TEST_${engine})
    list(GET LOWTIDE_TEST_${engine} 0 library)
    list(APPEND LOWTIDE_TEST_ENVIRONMENT LOWTIDE_${engine}=${library})
  endif()
endforeach()

# Under a sanitizer what takes long is to compile; what runs long is not in the tests' own files. Every
# file's includes are proven whole where there is no sanitizer.
function(lowtide_test_speed target)
  if(NOT LOWTIDE_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE -O0)
  if(NOT TARGET lowtide_test_headers)
    # A program, as tests are: a library is compiled with other options (-fPIC).
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
    add_executable(lowtide_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(lowtide_test_headers PRIVATE lowtide_test_main)
    lowtide_compile_options(lowtide_test_headers)
    target_compile_options(lowtide_test_headers PRIVATE -O0)
    target_precompile_headers(lowtide_test_headers PRIVATE <algorithm> <array> <chrono> <cmath> <cstdint>
      <functional> <limits> <memory> <numeric> <optional> <span> <string> <string_view> <tuple>
      <utility> <vector> <doctest/doctest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM lowtide_test_headers)
endfunction()

# lowtide_test(name SOURCES ... [LINKS ...] [THREADS])
#
# One doctest program; every test case in it becomes a test. LINKS defaults to lowtide::<name>.
# THREADS marks a program that starts threads: `make test` runs it in release and under the thread sanitizer.
function(lowtide_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "THREADS" "" "SOURCES;LINKS")
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_LINKS)
    set(arg_LINKS lowtide::${name})
  endif()
  set(target ${name}_test)
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} lowtide_test_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Only where it is used: what no path goes into is the same object in every clone.
  foreach(source IN LISTS arg_SOURCES)
    file(STRINGS ${source} uses REGEX "LOWTIDE_SOURCE_DIR" LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY
        COMPILE_DEFINITIONS LOWTIDE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
  lowtide_compile_options(${target})
  lowtide_test_speed(${target})

  # A program has one kind: `make test` runs `threads` under the thread sanitizer, and `cpp` under the other sanitizers.
  set(kind cpp)
  if(arg_THREADS)
    set(kind threads)
  endif()
  lowtide_labels(labels ${target} ${kind})

  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_cases.cmake)
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${list} VERBATIM
    COMMAND ${CMAKE_COMMAND}
      "-DPROGRAM=$<TARGET_FILE:${target}>" "-DLAUNCHER=${LOWTIDE_TEST_LAUNCHER}"
      "-DPREFIX=${LOWTIDE_BUILD_NAME}.${name}" "-DLABELS=${labels}"
      "-DFOLDER=${PROJECT_BINARY_DIR}" "-DOUT=${list}"
      "-DENVIRONMENT=${LOWTIDE_TEST_ENVIRONMENT}"
      -P ${PROJECT_SOURCE_DIR}/cmake/ListTestCases.cmake)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${list}\")\n  include(\"${list}\")\n"
                        "else()\n  add_test(\"${target} is not built\" \"${target}\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# lowtide_check(name LABELS ... COMMAND ...): any other command as a test.
function(lowtide_check name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;COMMAND")
  lowtide_labels(labels "" ${arg_LABELS})
  set(test "${LOWTIDE_BUILD_NAME}.${name}")
  add_test(NAME ${test} COMMAND ${arg_COMMAND})
  set_tests_properties(${test} PROPERTIES LABELS "${labels}")
endfunction()
