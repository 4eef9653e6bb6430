# lowtide_unity(target file...): with LOWTIDE_UNITY these files are compiled together, up to ten of a
# folder and those in it at a time. A file whose own names are also those of a neighbour does not
# belong among them.
function(lowtide_unity target)
  if(NOT LOWTIDE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_RELOCATABLE ON)
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "/?[^/]*$" "" folder ${file})
    string(REGEX REPLACE "/.*" "" folder "${folder}")
    string(MAKE_C_IDENTIFIER "all_${folder}" group)
    math(EXPR part "0${${group}} / 10")
    math(EXPR ${group} "0${${group}} + 1")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
endfunction()

function(lowtide_cold target is_cold)
  if(is_cold)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# lowtide_room(NAME room [EXECUTABLE command] [COLD] SOURCES ... [ALONE ...] HEADERS ... LINKS ...
#              [PRIVATE_LINKS ...])
#
# One room: the static library lowtide_<room>, known as lowtide::<room>, or with EXECUTABLE the
# program of that name. ALONE are sources that are not compiled together with others. LINKS are the
# rooms to its left, PRIVATE_LINKS what only its .cpp files see. COLD: nothing in it takes time when it
# runs, so a release compiles it in less.
function(lowtide_room)
  cmake_parse_arguments(PARSE_ARGV 0 arg "COLD" "NAME;EXECUTABLE"
                        "SOURCES;ALONE;HEADERS;LINKS;PRIVATE_LINKS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lowtide_room(${arg_NAME}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set(target lowtide_${arg_NAME})

  if(arg_EXECUTABLE)
    if(NOT arg_SOURCES)
      return()
    endif()
    add_executable(${target} ${arg_SOURCES} ${arg_ALONE} ${arg_HEADERS})
    lowtide_unity(${target} ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${arg_EXECUTABLE} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    lowtide_compile_options(${target})
    lowtide_cold(${target} ${arg_COLD})
    target_link_libraries(${target} PRIVATE ${arg_LINKS} ${arg_PRIVATE_LINKS})
    set_property(GLOBAL PROPERTY LOWTIDE_COMMAND ${target})
    return()
  endif()

  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES} ${arg_ALONE})
    lowtide_unity(${target} ${arg_SOURCES})
    lowtide_compile_options(${target})
    lowtide_cold(${target} ${arg_COLD})
    foreach(library IN LISTS arg_PRIVATE_LINKS)
      # A header-only library leaves nothing to link, so the installed package must not ask for it.
      get_target_property(type ${library} TYPE)
      if(type STREQUAL "INTERFACE_LIBRARY")
        set(library $<BUILD_INTERFACE:${library}>)
      endif()
      target_link_libraries(${target} PRIVATE ${library})
    endforeach()
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()

  add_library(lowtide::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  set_property(GLOBAL APPEND PROPERTY LOWTIDE_ROOMS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  target_sources(${target} ${scope} FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated FILES ${arg_HEADERS})
  if(NOT arg_HEADERS)
    target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  endif()
endfunction()
