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
run(${prefix}/bin/lacuna info)
