# Installs the build folder into a prefix of its own, then configures, builds and runs consumers: one of
# the tests', and the project that docs/how-to/use-from-cpp.md shows.
set(work ${BUILD}/package)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed)
  if(failed)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}: ${failed}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${work}/build -G ${GENERATOR}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build -j 2)
run(${work}/build/consumer)
run(${work}/prefix/bin/lowtide --version)

# page(language variable): the page's block of that language.
file(READ ${PAGE} text)
function(page language variable)
  string(FIND "${text}" "```${language}\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${PAGE} has no block of ${language}")
  endif()
  string(LENGTH "```${language}\n" head)
  math(EXPR begin "${begin} + ${head}")
  string(SUBSTRING "${text}" ${begin} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  set(${variable} "${block}" PARENT_SCOPE)
endfunction()
page(cmake project)
page(cpp program)
file(WRITE ${work}/page/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(page LANGUAGES CXX)\n${project}")
file(WRITE ${work}/page/mine.cpp "${program}")
run(${CMAKE_COMMAND} -S ${work}/page -B ${work}/page/build -G ${GENERATOR}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/page/build -j 2)
execute_process(COMMAND ${work}/page/build/mine WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE said RESULT_VARIABLE failed)
if(failed OR NOT said MATCHES "^(feasible|optimal), peak [0-9]+ bytes")
  message(FATAL_ERROR "The program of ${PAGE} says \"${said}\": ${failed}")
endif()
