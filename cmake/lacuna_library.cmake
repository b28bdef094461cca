# The library made of the rooms, its program, and what `cmake --install` puts where.
set(objects "")
foreach(room IN LISTS LACUNA_ROOMS)
  list(APPEND objects $<TARGET_OBJECTS:${room}>)
endforeach()

add_library(lacuna STATIC ${objects})
add_library(lacuna::lacuna ALIAS lacuna)
target_include_directories(lacuna PUBLIC
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/umbrella> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(lacuna PUBLIC cxx_std_20)
# A static library hands on what it must be linked with, and no include paths or definitions:
# public headers name no third-party library.
target_link_libraries(lacuna PRIVATE lacuna_openmp lacuna_highway lacuna_dense lacuna_hdf5
  lacuna_yaml lacuna_spdlog lacuna_fmt lacuna_cli11 lacuna_onnx ZLIB::ZLIB PNG::PNG JPEG::JPEG ${CMAKE_DL_LIBS})

add_executable(lacuna_program ${PROJECT_SOURCE_DIR}/framework/program/main.cpp)
set_target_properties(lacuna_program PROPERTIES OUTPUT_NAME lacuna)
target_link_libraries(lacuna_program PRIVATE lacuna lacuna_warnings)

if(TARGET lacuna_framework_distributed_mpi)
  add_library(lacuna_mpi MODULE $<TARGET_OBJECTS:lacuna_framework_distributed_mpi>)
  target_link_libraries(lacuna_mpi PRIVATE lacuna_mpi_library)
  set_target_properties(lacuna_mpi PROPERTIES PREFIX lib OUTPUT_NAME lacuna_mpi SUFFIX .so)
  add_dependencies(lacuna_program lacuna_mpi)
  install(TARGETS lacuna_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

install(TARGETS lacuna lacuna_openmp lacuna_highway lacuna_dense lacuna_hdf5 lacuna_yaml
  lacuna_spdlog lacuna_fmt lacuna_cli11 lacuna_onnx EXPORT lacuna_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lacuna_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/umbrella/lacuna/lacuna.h
  ${PROJECT_BINARY_DIR}/umbrella/lacuna/extend.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lacuna)
foreach(header IN LISTS LACUNA_PUBLIC_HEADERS LACUNA_EXTENSION_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lacuna/${folder})
endforeach()

include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lacunaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  ${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
install(EXPORT lacuna_targets NAMESPACE lacuna:: FILE lacunaTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
