include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY LOWTIDE_ROOMS)
get_property(command GLOBAL PROPERTY LOWTIDE_COMMAND)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lowtide)

install(TARGETS ${rooms} lowtide_umbrella EXPORT lowtide FILE_SET HEADERS)
if(command)
  install(TARGETS ${command} lowtide_worker RUNTIME)
endif()
install(EXPORT lowtide NAMESPACE lowtide:: DESTINATION ${package_dir} FILE lowtide-targets.cmake)

configure_file(cmake/lowtide-config.cmake.in lowtide-config.cmake @ONLY)
write_basic_package_version_file(lowtide-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lowtide-config.cmake
              ${PROJECT_BINARY_DIR}/lowtide-config-version.cmake
        DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
