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

# Brackets and semicolons would tear a CMake list apart; doctest's own lines begin with a bracket.
string(REGEX REPLACE "(^|\n)(\\[doctest\\]|====)[^\n]*" "" output "${output}")
string(REPLACE "[" "(" output "${output}")
string(REPLACE "]" ")" output "${output}")
string(REPLACE ";" "," output "${output}")
string(REGEX MATCHALL "[^\n]+" cases "${output}")

set(script "")
foreach(case IN LISTS cases)
  # A question mark fits any character, so that the filter needs no escapes.
  string(REGEX REPLACE "[^A-Za-z0-9 _]" "?" filter "${case}")
  set(test "[==[${PREFIX}: ${case}]==]")
  string(APPEND script
    "add_test(${test} ${launcher}[==[${PROGRAM}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties(${test} PROPERTIES LABELS [==[${LABELS}]==]"
    " ENVIRONMENT [==[${ENVIRONMENT}]==]"
    " WORKING_DIRECTORY [==[${FOLDER}]==] FAIL_REGULAR_EXPRESSION [==[test cases: +0 ]==])\n")
endforeach()
file(WRITE ${OUT} "${script}")
