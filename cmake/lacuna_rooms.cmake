# lacuna_room(PATH [LIBRARY...]): the sources in PATH (and its ops/ folder) as one object target.
#
# The target is named after the whole path (framework/kernels/csr becomes lacuna_framework_kernels_csr).
# With LACUNA_UNITY the rooms of a line of unity_rooms.txt are one target, named after the first.
# Every room sees the public include root; messages are formatted by fmt everywhere; the third-party
# libraries a room alone uses are named in the call.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/lacuna SYMBOLIC)
include(lacuna_headers)

add_library(lacuna_flags INTERFACE)
target_include_directories(lacuna_flags INTERFACE
  $<$<BOOL:${BUILD_SHARED_LIBS}>:$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/exported>>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/umbrella> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(lacuna_flags INTERFACE cxx_std_20)

# Flags for our own sources only: users of the library do not inherit them. Warnings are for developers:
# without them g++ compiles a twentieth faster.
add_library(lacuna_warnings INTERFACE)
if(LACUNA_DEVELOPER)
  target_compile_options(lacuna_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-sign-conversion)
  if(LACUNA_UNITY AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # For clang, a name in a function hides one of another source's anonymous namespace.
    target_compile_options(lacuna_warnings INTERFACE -Wno-shadow)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns at -O3 of `"text" + std::to_string(n)` (GCC bug 105651), even without -Wall.
  target_compile_options(lacuna_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow
    -Wno-array-bounds)
endif()
if(LACUNA_DEVELOPER)
  target_compile_options(lacuna_warnings INTERFACE -Werror)
endif()
if(LACUNA_SANITIZE)
  # With what sanitizers put in, g++ 12 takes parts of std::regex for read before they are set.
  add_compile_options(-fsanitize=${LACUNA_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${LACUNA_SANITIZE})
endif()

# The rooms that build, read, check, print, and call kernels: their own loops are short, and at -O1 they
# compile a quarter faster.
set(light_rooms framework/config framework/param framework/autograd framework/autograd/tokens
  framework/autograd/classes framework/nn framework/model framework/model/presets
  layers/convolutions layers/tokens layers sparsity/options sparsity/calibration sparsity
  framework/shrink framework/io/storage framework/io/hdf5 framework/io framework/records
  framework/data/types framework/inference framework/quantize framework/distributed framework/onnx
  framework/job framework/train/checks framework/train framework/train/runs framework/train/weights
  framework/train/parts framework/train/loop framework/interop framework/report
  framework/program/command_line framework/program/settings framework/program/output
  framework/program/actions framework/program)
set(light_optimization $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
# A whole build also precompiles what most rooms include of others; after a change of such a header it
# would compile everything again.
set(library_headers ${PROJECT_SOURCE_DIR}/cmake/precompiled_library.hpp)
set(light_headers ${library_headers})
if(LACUNA_UNITY)
  list(APPEND library_headers <lacuna/framework/nn/module.h>)
  list(APPEND light_headers <lacuna/framework/train/parts/experiment.hpp>)
endif()
lacuna_precompiled(lacuna_precompiled_library ON "${library_headers}" lacuna_fmt)
lacuna_precompiled(lacuna_precompiled_light ON "${light_headers}" lacuna_fmt)
target_compile_options(lacuna_precompiled_light PRIVATE ${light_optimization})
# Highway's own headers are read once for each instruction set, so only those of one can be precompiled.
set(kernel_headers ${PROJECT_SOURCE_DIR}/cmake/precompiled_kernels.hpp ${lacuna_highway_headers})
lacuna_precompiled(lacuna_precompiled_kernels ON "${kernel_headers}" lacuna_fmt lacuna_highway)

# Generated sources have their own target, because every source of a target waits for all files that are
# generated for that target.
add_library(lacuna_made OBJECT)
target_link_libraries(lacuna_made PRIVATE lacuna_warnings PUBLIC lacuna_flags)

set(LACUNA_ROOMS lacuna_made CACHE INTERNAL "")
function(lacuna_room path)
  string(REPLACE "/" "_" name ${path})
  set(room lacuna_${name})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/*.cpp
    ${PROJECT_SOURCE_DIR}/${path}/ops/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    return()
  endif()
  if("lacuna_mpi_library" IN_LIST ARGN AND NOT TARGET lacuna_mpi_library)
    return()  # built without MPI
  endif()
  if(unit_of_${path})
    set(room ${unit_of_${path}})
    target_sources(${room} PRIVATE ${sources})
  else()
    add_library(${room} OBJECT ${sources})
  endif()
  target_link_libraries(${room} PRIVATE lacuna_warnings lacuna_fmt ${ARGN} PUBLIC lacuna_flags)
  if("lacuna_mpi_library" IN_LIST ARGN)  # a plugin's: it has none of the library
    return()
  endif()
  if("lacuna_highway" IN_LIST ARGN)
    set(precompiled lacuna_precompiled_kernels)
  elseif(path IN_LIST light_rooms)
    set(precompiled lacuna_precompiled_light)
  else()
    set(precompiled lacuna_precompiled_library)
  endif()
  if(room IN_LIST LACUNA_ROOMS)  # a unit that an earlier room has begun
    get_target_property(of_unit ${room} PRECOMPILE_HEADERS_REUSE_FROM)
    if(NOT of_unit STREQUAL precompiled)
      message(FATAL_ERROR "cmake/unity_rooms.txt: ${path} is not compiled like the first room of its line")
    endif()
    return()
  endif()
  if(precompiled STREQUAL "lacuna_precompiled_light")
    target_compile_options(${room} PRIVATE ${light_optimization})
  endif()
  target_precompile_headers(${room} REUSE_FROM ${precompiled})
  set(LACUNA_ROOMS ${LACUNA_ROOMS} ${room} CACHE INTERNAL "")
endfunction()

if(LACUNA_UNITY)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/unity_rooms.txt units REGEX "^[^#]")
  if(NOT LACUNA_KERNELS STREQUAL "machine")
    list(FILTER units EXCLUDE REGEX "^framework/kernels")
  endif()
  foreach(unit IN LISTS units)
    string(REPLACE " " ";" rooms ${unit})
    list(GET rooms 0 first)
    string(REPLACE "/" "_" name lacuna_${first})
    add_library(${name} OBJECT)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    foreach(room IN LISTS rooms)
      set(unit_of_${room} ${name})
    endforeach()
  endforeach()
endif()
