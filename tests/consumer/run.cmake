# Installs lacuna into a folder of the build tree, then builds and runs the consumer against it.
# cmake -DBUILD_DIR=… -DSOURCE_DIR=… -DCONFIG=… -DGENERATOR=… -DCXX_COMPILER=… -DCXX_FLAGS=… -P run.cmake
set(work ${BUILD_DIR}/consumer)
set(prefix ${work}/installed)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}\ngave ${result}:\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix} --config ${CONFIG})

# All headers that are installed can be had by lacuna.h and extend.h.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
file(READ ${prefix}/include/lacuna/lacuna.h umbrella)
file(READ ${prefix}/include/lacuna/extend.h extension)
string(APPEND umbrella "${extension}\n#include \"lacuna/extend.h\"\n")
foreach(header IN LISTS headers)
  string(FIND "${umbrella}" "#include \"${header}\"" position)
  if(position EQUAL -1 AND NOT header STREQUAL "lacuna/lacuna.h")
    list(APPEND strangers ${header})
  endif()
endforeach()
if(strangers)
  message(FATAL_ERROR "installed, but neither in lacuna.h nor in extend.h: ${strangers}")
endif()

# What is installed must work without the trees it came from.
file(GLOB_RECURSE packages ${prefix}/*.cmake)
if(NOT packages)
  message(FATAL_ERROR "no CMake package was installed in ${prefix}")
endif()
foreach(package IN LISTS packages)
  file(READ ${package} text)
  foreach(tree ${BUILD_DIR} ${SOURCE_DIR})
    string(FIND "${text}" "${tree}" position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${package} names a folder of the build: ${tree}")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer -B ${work}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  -DCMAKE_CXX_FLAGS=${CXX_FLAGS})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)

# The same program by pkg-config, whose file must name the folder that it was installed to.
find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE found ${prefix}/*/lacuna.pc)
  cmake_path(GET found PARENT_PATH folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}
    ${pkg_config} --static --cflags --libs lacuna
    RESULT_VARIABLE result OUTPUT_VARIABLE flags ERROR_VARIABLE error OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "pkg-config lacuna gave ${result}: ${error}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  separate_arguments(own UNIX_COMMAND "${CXX_FLAGS}")
  run(${CXX_COMPILER} ${own} ${SOURCE_DIR}/tests/consumer/main.cpp ${flags} -o ${work}/by_pkg_config)
  run(${work}/by_pkg_config)
else()
  message(STATUS "without pkg-config (pkgconf), lacuna.pc stays untested here")
endif()
run(${prefix}/bin/lacuna info)
foreach(made man/man1/lacuna.1 bash-completion/completions/lacuna zsh/vendor-completions/_lacuna
    fish/vendor_completions.d/lacuna.fish doc/lacuna/LICENSE doc/lacuna/README.md doc/lacuna/docs/README.md
    doc/lacuna/configs/mnist_mlp_rigl.yaml doc/lacuna/examples/mlp.cpp)
  if(NOT EXISTS ${prefix}/share/${made})
    message(FATAL_ERROR "not installed: share/${made}")
  endif()
endforeach()

# What is internal cannot be included: the compiler must say that there is no such file, and compile
# the same source without it.
set(internal lacuna/framework/kernels/dense/gemm.hpp)
if(NOT EXISTS ${SOURCE_DIR}/framework/kernels/dense/gemm.hpp)
  message(FATAL_ERROR "the internal header of this test is gone from the sources: ${internal}")
endif()
set(compile ${CXX_COMPILER} -std=c++20 -fsyntax-only -I ${prefix}/include)
file(WRITE ${work}/public.cpp "#include \"lacuna/extend.h\"\nint main() {}\n")
file(WRITE ${work}/internal.cpp "#include \"${internal}\"\nint main() {}\n")
run(${compile} ${work}/public.cpp)
execute_process(COMMAND ${compile} ${work}/internal.cpp RESULT_VARIABLE result
  OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "${internal}.*(No such file|not found)")
  message(FATAL_ERROR "including ${internal} gave ${result}, not a file that is missing:\n${output}")
endif()
