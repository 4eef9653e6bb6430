# Runs test programs where no engine is to be found: whatever needs none passes all the same.
string(REPLACE "," ";" programs "${PROGRAMS}")
foreach(program IN LISTS programs)
  set(filter "")
  if(program MATCHES "conformance_test")
    set(filter "--test-case=conformance: the fixed cases,conformance: names*")
  elseif(program MATCHES "driver_test")
    set(filter "--test-case-exclude=link:*,transforms:*")  # no engine takes part in these
  endif()
  execute_process(COMMAND ${LAUNCHER} ${program} ${filter} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${program}: ${failed}")
  endif()
endforeach()
