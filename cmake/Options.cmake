option(LOWTIDE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LOWTIDE_WERROR "Warnings are errors" OFF)
option(LOWTIDE_UNITY "Compile the files of a folder together: a third of the time from nothing" OFF)
option(LOWTIDE_DEBUG_CHECKS "Compile the expensive assertions in" OFF)
option(LOWTIDE_PYTHON "Build the Python package; pyproject.toml asks for it" OFF)
set(LOWTIDE_PREFIX "" CACHE PATH
    "With LOWTIDE_PYTHON: the package of the Lowtide installed there, not of these sources")
option(LOWTIDE_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(LOWTIDE_INSTALL "Write the install rules" ${PROJECT_IS_TOP_LEVEL})
set(LOWTIDE_SANITIZE "" CACHE STRING "Sanitizers for everything, as in address,undefined")
set(LOWTIDE_QUICK "cpp;threads;python;house;headers" CACHE STRING
    "Labels of the tests that `make test` runs from this build folder")
mark_as_advanced(LOWTIDE_QUICK)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# The Python bindings link the same static rooms into a shared object.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Nothing here is a C++ module; looking for them costs a scan of every file.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

option(LOWTIDE_CCACHE "Compile through ccache, where it is installed" ON)
find_program(LOWTIDE_CCACHE_PROGRAM ccache)
mark_as_advanced(LOWTIDE_CCACHE_PROGRAM)
if(LOWTIDE_CCACHE AND LOWTIDE_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths are taken from the sources' folder, so that another clone finds the same objects, and a
  # precompiled header does not keep a file from being cached.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${LOWTIDE_CCACHE_PROGRAM})
endif()

if(LOWTIDE_SANITIZE)
  add_compile_options(-fsanitize=${LOWTIDE_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LOWTIDE_SANITIZE})
  # The first element of an empty vector, which sanitizers let pass.
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
if(LOWTIDE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "LOWTIDE_FUZZ needs clang: libFuzzer is part of it")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(lowtide_compile_options target)
  set(options -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
              -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # It sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
    list(APPEND options -Wno-restrict)
  endif()
  if(LOWTIDE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Instrumented code hides from GCC what was initialised.
    list(APPEND options -Wno-maybe-uninitialized)
  endif()
  if(LOWTIDE_WERROR)
    list(APPEND options -Werror)
  endif()
  target_compile_options(${target} PRIVATE ${options})
endfunction()
