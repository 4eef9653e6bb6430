# The tests that are no C++ test cases: the project's own rules, the package, and Python's suites.
find_package(Python3 3.9 COMPONENTS Interpreter)
get_property(rooms GLOBAL PROPERTY LOWTIDE_ROOMS)
get_property(command GLOBAL PROPERTY LOWTIDE_COMMAND)

if("headers" IN_LIST LOWTIDE_QUICK)
  set(units "")
  set(all "")
  file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
       ${PROJECT_SOURCE_DIR}/src/lowtide/*.h)
  foreach(header IN LISTS public_headers ITEMS lowtide/base/version.h)
    set(unit ${PROJECT_BINARY_DIR}/headers/${header}.cpp)
    # Twice, so that a missing #pragma once shows too.
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND units ${unit})
    string(APPEND all "#include \"${header}\"\n")
  endforeach()
  # All in one, so that no name stands for two things: the linker would take one for the other.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers/all.cpp CONTENT "${all}")
  list(APPEND units ${PROJECT_BINARY_DIR}/headers/all.cpp)
  add_library(lowtide_headers OBJECT EXCLUDE_FROM_ALL ${units})
  target_include_directories(lowtide_headers PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_compile_definitions(lowtide_headers PRIVATE LOWTIDE_DEBUG_CHECKS=1)
  target_compile_options(lowtide_headers PRIVATE -O0 -g0)
  lowtide_compile_options(lowtide_headers)
  add_dependencies(lowtide_quick lowtide_headers)
  lowtide_check("headers are self-contained" LABELS headers
    COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target lowtide_headers)
endif()

if(NOT LOWTIDE_SANITIZE AND "house" IN_LIST LOWTIDE_QUICK)
  if(Python3_FOUND)
    foreach(check includes style)
      lowtide_check("${check}" LABELS house COMMAND
        ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_${check}.py ${PROJECT_SOURCE_DIR})
    endforeach()
  endif()
  if(command AND CMAKE_GENERATOR STREQUAL "Ninja")
    # Whoever builds the command alone can use the engines, and install.
    lowtide_check("the command brings its worker" LABELS house COMMAND sh -c
      "${CMAKE_MAKE_PROGRAM} -C '${PROJECT_BINARY_DIR}' -t graph ${command} | grep -q lowtide-worker")
  endif()
  if(LOWTIDE_INSTALL AND command)
    add_dependencies(lowtide_quick ${rooms} ${command})
    lowtide_check("package" LABELS house COMMAND
      ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DCXX=${CMAKE_CXX_COMPILER}
      -DCONSUMER=${CMAKE_CURRENT_SOURCE_DIR}/package -DGENERATOR=${CMAKE_GENERATOR}
      -DSOURCE=${PROJECT_SOURCE_DIR} -DPAGE=${PROJECT_SOURCE_DIR}/docs/how-to/use-from-cpp.md
      -P ${PROJECT_SOURCE_DIR}/cmake/PackageTest.cmake)
  endif()
endif()

# Every test_*.py is one suite. `make test` runs them with tools/suites.py, which imports torch once, and `make test-long`
# those in a folder `long` too.
find_program(LOWTIDE_PYTEST pytest PATHS ${PROJECT_SOURCE_DIR}/build/venv/bin NO_DEFAULT_PATH)
if(LOWTIDE_PYTEST AND command AND NOT LOWTIDE_SANITIZE MATCHES thread)
  file(GLOB_RECURSE suites CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} test_*.py)
  list(FILTER suites EXCLUDE REGEX "/long/")
  if("python" IN_LIST LOWTIDE_QUICK)
    add_dependencies(lowtide_quick lowtide_bench)
  endif()
  foreach(suite IN LISTS suites)
    lowtide_labels(labels ${command} python)
    set(test "${LOWTIDE_BUILD_NAME}.pytest ${suite}")
    add_test(NAME ${test} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMAND
      ${LOWTIDE_PYTEST} -q -p no:cacheprovider -p no:logging ${CMAKE_CURRENT_SOURCE_DIR}/${suite})
    # The dearer, the earlier: a suite that starts last would keep one core waiting. Pytest exits with 5
    # where a suite's own import is skipped (no torch).
    set_tests_properties(${test} PROPERTIES LABELS "${labels}" COST 1000 SKIP_RETURN_CODE 5 ENVIRONMENT
      "LOWTIDE_BUILD=${LOWTIDE_BUILD_NAME};LOWTIDE_BIN=$<TARGET_FILE:${command}>;LOWTIDE_BENCH=$<TARGET_FILE:lowtide_bench>;LOWTIDE_SOURCE_DIR=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1;OMP_WAIT_POLICY=passive;${LOWTIDE_TEST_ENVIRONMENT}")
  endforeach()
endif()
