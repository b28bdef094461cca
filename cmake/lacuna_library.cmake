# The library made of the rooms, its program, and what `cmake --install` puts where.
set(objects "")
foreach(room IN LISTS LACUNA_ROOMS)
  list(APPEND objects $<TARGET_OBJECTS:${room}>)
endforeach()

# With BUILD_SHARED_LIBS lacuna is a shared library, which exports what installed headers declare. The
# program and the tests also use the rest, so they link a static library in any case.
function(lacuna_library name)
  add_library(${name} ${ARGN} ${objects})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/umbrella>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  # What a static library must be linked with; no include paths or definitions: public headers name no
  # third-party library.
  target_link_libraries(${name} PRIVATE lacuna_openmp lacuna_highway lacuna_dense lacuna_hdf5
    lacuna_yaml lacuna_spdlog lacuna_fmt lacuna_cli11 lacuna_onnx ZLIB::ZLIB lacuna_images
    ${CMAKE_DL_LIBS})
endfunction()

lacuna_library(lacuna)
add_library(lacuna::lacuna ALIAS lacuna)
if(BUILD_SHARED_LIBS)
  set_target_properties(lacuna PROPERTIES VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  lacuna_library(lacuna_internal STATIC)
else()
  add_library(lacuna_internal ALIAS lacuna)
endif()

add_executable(lacuna_program ${PROJECT_SOURCE_DIR}/framework/program/main.cpp)
set_target_properties(lacuna_program PROPERTIES OUTPUT_NAME lacuna)
target_link_libraries(lacuna_program PRIVATE lacuna_internal lacuna_warnings)

if(TARGET lacuna_framework_distributed_mpi)
  add_library(lacuna_mpi MODULE $<TARGET_OBJECTS:lacuna_framework_distributed_mpi>)
  target_link_libraries(lacuna_mpi PRIVATE lacuna_mpi_library)
  set_target_properties(lacuna_mpi PROPERTIES PREFIX lib OUTPUT_NAME lacuna_mpi SUFFIX .so)
  add_dependencies(lacuna_program lacuna_mpi)
  install(TARGETS lacuna_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()

set(exported lacuna)
if(NOT BUILD_SHARED_LIBS)
  list(APPEND exported lacuna_openmp lacuna_highway lacuna_dense lacuna_hdf5 lacuna_yaml lacuna_spdlog
    lacuna_fmt lacuna_cli11 lacuna_onnx lacuna_images)
endif()
install(TARGETS ${exported} EXPORT lacuna_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    NAMELINK_COMPONENT development)
install(TARGETS lacuna_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/umbrella/lacuna/lacuna.h
  ${PROJECT_BINARY_DIR}/umbrella/lacuna/extend.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lacuna COMPONENT development)
foreach(header IN LISTS LACUNA_PUBLIC_HEADERS LACUNA_EXTENSION_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lacuna/${folder} COMPONENT development)
endforeach()

include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lacunaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  ${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna COMPONENT development)
install(EXPORT lacuna_targets NAMESPACE lacuna:: FILE lacunaTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna COMPONENT development)

# pkg-config finds the library from its own file's folder, so that `--prefix` of an installation may differ.
# With the static library, `pkg-config --static` lists the libraries that it needs; the shared one is linked
# with them already.
file(RELATIVE_PATH lacuna_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" lacuna_pc_prefix "${lacuna_pc_prefix}")
set(lacuna_pc_requires "")
set(lacuna_pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  set(lacuna_pc_requires "yaml-cpp spdlog fmt hdf5 zlib libpng libjpeg protobuf libhwy")
  set(lacuna_pc_libs "-lonnx -lonnx_proto${lacuna_image_libraries} -fopenmp -ldl")
  if(dnnl_FOUND)
    string(APPEND lacuna_pc_libs " -ldnnl")
  endif()
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/lacuna.pc.in ${PROJECT_BINARY_DIR}/lacuna.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lacuna.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
  ${PROJECT_SOURCE_DIR}/SECURITY.md ${PROJECT_SOURCE_DIR}/CITATION.cff
  ${PROJECT_SOURCE_DIR}/Containerfile DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/configs
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
