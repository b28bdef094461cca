# The libraries lacuna stands on, each behind one interface target, so that a room names what it uses.
# Those that are headers alone are needed to build lacuna and not to use it: BUILD_INTERFACE.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(GIF QUIET)  # optional, as libwebp is: without them such images are refused
find_path(WEBP_INCLUDE_DIR webp/decode.h)
find_library(WEBP_LIBRARY webp)
find_package(Protobuf REQUIRED)  # before ONNX, whose targets name its library
find_package(ONNX REQUIRED)
find_package(hwy REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Threads REQUIRED)
find_package(dnnl QUIET)  # optional: without it dense products run on Eigen

find_package(MPI QUIET COMPONENTS C)  # optional: without it one process trains alone

# One OpenMP runtime does all the work: the compiler's. Debian's oneDNN names libgomp; with clang its
# calls bind to libomp, which has the same symbols and comes first because every room links this.
add_library(lacuna_openmp INTERFACE)
target_link_libraries(lacuna_openmp INTERFACE OpenMP::OpenMP_CXX Threads::Threads)

add_library(lacuna_highway INTERFACE)
target_link_libraries(lacuna_highway INTERFACE hwy::hwy)
# Instruction sets that the kernels are not compiled for: those whose vectors have no size when
# compiling (the kernels keep vectors in arrays; such machines run NEON), and one that no machine of
# the last fifteen years ends at.
set(not_compiled HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128 HWY_RVV HWY_SSSE3)
set(lacuna_highway_headers "")
if(LACUNA_KERNELS STREQUAL "machine")
  lacuna_instruction_sets(instruction_sets)
  list(FILTER instruction_sets EXCLUDE REGEX "^lacks ")
  list(GET instruction_sets 0 best)
  set(target_of_avx512 HWY_AVX3)
  set(target_of_avx-vnni HWY_AVX2)
  set(target_of_avx2 HWY_AVX2)
  set(target_of_sse4 HWY_SSE4)
  if(target_of_${best})
    # A better one than this machine has would be compiled next to it.
    list(APPEND not_compiled HWY_AVX3_DL)
    foreach(better IN ITEMS avx512 avx2)
      if(target_of_${best} STREQUAL target_of_${better})
        break()
      endif()
      list(APPEND not_compiled ${target_of_${better}})
    endforeach()
    target_compile_definitions(lacuna_highway INTERFACE HWY_BASELINE_TARGETS=${target_of_${best}})
    set(lacuna_highway_headers <hwy/foreach_target.h> <hwy/highway.h>)
    # What spreads_by_loads() in kernels/simd/processor.cpp finds on this machine.
    set(intel "")
    if(best STREQUAL "avx512" AND EXISTS /proc/cpuinfo)
      file(STRINGS /proc/cpuinfo intel LIMIT_COUNT 1 REGEX "^vendor_id.*GenuineIntel")
    endif()
    # Of the int8 kernels the best one for this machine; without it plain C++ gives the same bits.
    if(EXISTS /proc/cpuinfo)
      set(not_int8 AVX512_VNNI AVX_VNNI AVX2)
      file(STRINGS /proc/cpuinfo flags LIMIT_COUNT 1 REGEX "^flags")
      if(best STREQUAL "avx512" AND flags MATCHES " avx512_vnni")
        list(REMOVE_ITEM not_int8 AVX512_VNNI)
      elseif(best MATCHES "avx" AND flags MATCHES " avx_vnni")
        list(REMOVE_ITEM not_int8 AVX_VNNI)
      elseif(best MATCHES "avx")
        list(REMOVE_ITEM not_int8 AVX2)
      endif()
      list(TRANSFORM not_int8 PREPEND LACUNA_WITHOUT_INT8_)
      add_compile_definitions(${not_int8})
    endif()
    add_compile_definitions(LACUNA_ONE_INSTRUCTION_SET="${best}"
      LACUNA_SPREADS_BY_LOADS=$<NOT:$<STREQUAL:${intel},>>)
  endif()
  message(STATUS "Kernels: ${best}")
elseif(NOT LACUNA_KERNELS STREQUAL "all")
  message(FATAL_ERROR "LACUNA_KERNELS is ${LACUNA_KERNELS}; expected all or machine")
endif()
list(JOIN not_compiled "|" not_compiled)
target_compile_definitions(lacuna_highway INTERFACE "HWY_DISABLED_TARGETS=(${not_compiled})")

add_library(lacuna_dense INTERFACE)
target_link_libraries(lacuna_dense INTERFACE $<BUILD_INTERFACE:Eigen3::Eigen>)
if(dnnl_FOUND)
  message(STATUS "Dense products: oneDNN ${dnnl_VERSION}")
  target_link_libraries(lacuna_dense INTERFACE DNNL::dnnl)
  target_compile_definitions(lacuna_dense INTERFACE LACUNA_HAVE_DNNL=1)
else()
  message(STATUS "Dense products: Eigen (oneDNN is faster: libdnnl-dev, ocl-icd-opencl-dev)")
endif()

# HDF5's shared library loads curl, TLS, LDAP and Kerberos, 30 libraries that nothing here uses and that take
# a third of the time in which a command starts. A program therefore takes HDF5's archive, where one can be
# linked without them. Packages do not: they depend on Debian's library.
option(LACUNA_HDF5_ARCHIVE "Link programs with HDF5's archive instead of its shared library" ON)
add_library(lacuna_hdf5 INTERFACE)
set(hdf5_of_programs hdf5::hdf5)
if(LACUNA_HDF5_ARCHIVE)
  include(CheckCXXSourceCompiles)
  list(GET HDF5_C_LIBRARIES 0 hdf5_archive)
  string(REGEX REPLACE "\\.so$" ".a" hdf5_archive "${hdf5_archive}")
  find_library(SZ_LIBRARY sz)
  if(SZ_LIBRARY AND EXISTS "${hdf5_archive}")
    set(hdf5_archive ${hdf5_archive} ${SZ_LIBRARY} ZLIB::ZLIB Threads::Threads m ${CMAKE_DL_LIBS})
    set(CMAKE_REQUIRED_INCLUDES ${HDF5_C_INCLUDE_DIRS})
    set(CMAKE_REQUIRED_LIBRARIES ${hdf5_archive})
    check_cxx_source_compiles("#include <hdf5.h>\nint main() { return H5open(); }" LACUNA_HDF5_ARCHIVE_LINKS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(LACUNA_HDF5_ARCHIVE_LINKS)
      set(hdf5_of_programs ${hdf5_archive})
    endif()
  endif()
endif()
set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
target_include_directories(lacuna_hdf5 SYSTEM INTERFACE $<BUILD_INTERFACE:${HDF5_C_INCLUDE_DIRS}>)
target_link_libraries(lacuna_hdf5 INTERFACE
  "$<BUILD_INTERFACE:$<IF:${is_program},${hdf5_of_programs},hdf5::hdf5>>"
  $<INSTALL_INTERFACE:hdf5::hdf5>)

# Image formats that are read where their libraries are.
add_library(lacuna_images INTERFACE)
target_link_libraries(lacuna_images INTERFACE PNG::PNG JPEG::JPEG)
set(lacuna_image_libraries "")
macro(lacuna_image_format name package includes library link)
  if(NOT "${includes}" STREQUAL "" AND EXISTS "${library}")
    target_include_directories(lacuna_images SYSTEM INTERFACE $<BUILD_INTERFACE:${includes}>)
    target_link_libraries(lacuna_images INTERFACE $<BUILD_INTERFACE:${library}>
      $<INSTALL_INTERFACE:${link}>)
    target_compile_definitions(lacuna_images INTERFACE $<BUILD_INTERFACE:LACUNA_HAVE_${name}=1>)
    string(APPEND lacuna_image_libraries " -l${link}")
  else()
    message(STATUS "Images: no ${name} (${package})")
  endif()
endmacro()
lacuna_image_format(WEBP libwebp-dev "${WEBP_INCLUDE_DIR}" "${WEBP_LIBRARY}" webp)
lacuna_image_format(GIF libgif-dev "${GIF_INCLUDE_DIR}" "${GIF_LIBRARY}" gif)

add_library(lacuna_yaml INTERFACE)
target_link_libraries(lacuna_yaml INTERFACE yaml-cpp)

add_library(lacuna_spdlog INTERFACE)
target_link_libraries(lacuna_spdlog INTERFACE spdlog::spdlog)

# The text of messages, in every room's .cpp files.
add_library(lacuna_fmt INTERFACE)
target_link_libraries(lacuna_fmt INTERFACE fmt::fmt)

add_library(lacuna_cli11 INTERFACE)
target_link_libraries(lacuna_cli11 INTERFACE $<BUILD_INTERFACE:CLI11::CLI11>)

add_library(lacuna_json INTERFACE)
target_link_libraries(lacuna_json INTERFACE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)

add_library(lacuna_onnx INTERFACE)
target_link_libraries(lacuna_onnx INTERFACE onnx)

# MPI is in a plugin, which is loaded where a launcher has started the program; the library knows
# where it may lie.
add_library(lacuna_mpi_plugin_place INTERFACE)
if(MPI_C_FOUND)
  message(STATUS "Several machines: MPI ${MPI_C_VERSION} (${MPI_C_LIBRARIES})")
  add_library(lacuna_mpi_library INTERFACE)
  target_link_libraries(lacuna_mpi_library INTERFACE MPI::MPI_C)
  target_link_libraries(lacuna_mpi_plugin_place INTERFACE ${CMAKE_DL_LIBS})
  target_compile_definitions(lacuna_mpi_plugin_place INTERFACE LACUNA_HAVE_MPI=1
    LACUNA_PLUGIN_FOLDER="${CMAKE_INSTALL_LIBDIR}"
    LACUNA_PLUGIN_BUILD_FOLDER="${PROJECT_BINARY_DIR}")
else()
  message(STATUS "Several machines: no MPI (libopenmpi-dev, openmpi-bin)")
endif()
