# Asks a doctest program for its cases and writes one add_test for each.
execute_process(COMMAND ${LAUNCHER} ${PROGRAM} --list-test-cases --no-intro --no-version
                OUTPUT_VARIABLE output RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --list-test-cases: ${failed}\n${output}")
endif()

set(launcher "")
foreach(word IN LISTS LAUNCHER)
  string(APPEND launcher "[==[${word}]==] ")
endforeach()

# Semicolons and brackets would tear a CMake list apart.
string(REGEX MATCHALL "[^\n]+" lines "${output}")
if(output MATCHES "[][;]")
  message(FATAL_ERROR "${PROGRAM}: a test case's name has one of [ ] ; in it")
endif()
set(script "")
foreach(line IN LISTS lines)
  if(line MATCHES "^====")
    continue()
  endif()
  string(REPLACE "," "\\," filter "${line}")
  string(APPEND script
    "add_test([==[${PREFIX}${line}]==] ${launcher}[==[${PROGRAM}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties([==[${PREFIX}${line}]==] PROPERTIES LABELS [==[${LABELS}]==]"
    " WORKING_DIRECTORY [==[${FOLDER}]==])\n")
endforeach()
file(WRITE ${OUT} "${script}")
