# Everything here is private to .cpp files, so that none of it reaches whoever uses the package.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(fmt 8 REQUIRED)
if(LOWTIDE_TESTS)
  find_package(doctest 2.4 REQUIRED)
endif()
