# What makes the build faster and changes nothing of what is built: a compiler cache where it is
# installed, and headers compiled once. No other linker: with lld 14 exceptions that g++ 12 throws from
# the cold part of a function find no handler.
#
# LACUNA_UNITY compiles groups of rooms as one source each (unity_rooms.txt; kernels only with
# LACUNA_KERNELS=machine), and several tests as one: less work for a whole build, more after a change. The
# bits are the same.
option(LACUNA_UNITY "Compile groups of rooms, and of tests, as one source each" OFF)
if(LACUNA_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # By default g++ looks for garbage from 128 MB on, which a room exceeds: 5 % of the time, to save a
  # fifth of at most 1 GB.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
  # Included sources have classes in their anonymous namespaces.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# LACUNA_KERNELS=machine compiles the kernels for the best instruction set of this machine alone, and
# precompiles Highway's headers for it. On a processor without that set the program ends with an error.
set(LACUNA_KERNELS all CACHE STRING "Instruction sets to compile the kernels for: all or machine")
option(LACUNA_CCACHE "Compile through ccache where it is installed" ON)

if(LACUNA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LACUNA_CCACHE_PROGRAM ccache)
  if(LACUNA_CCACHE_PROGRAM)
    message(STATUS "Compiler cache: ${LACUNA_CCACHE_PROGRAM}")
    # What ccache has to be told before it caches what is compiled with a precompiled header. Comments
    # count: without them, a comment that moves a line of such a header gives an outdated object, whose
    # users then stop with "redefinition of".
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_COMMENTS=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${LACUNA_CCACHE_PROGRAM})
  endif()
endif()

# lacuna_precompiled(NAME POSITION_INDEPENDENT HEADERS [LIBRARY...]): a target whose HEADERS other
# targets take over compiled, by target_precompile_headers(TARGET REUSE_FROM NAME). They must have its
# flags: g++ 12 crashes where a header precompiled at -O1 is used at -O3.
function(lacuna_precompiled name position_independent headers)
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing: a target needs a source.\n")
  add_library(${name} OBJECT ${source})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${position_independent})
  target_link_libraries(${name} PRIVATE ${ARGN} lacuna_warnings lacuna_flags)
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

# lacuna_instruction_sets(RESULT): the instruction sets of this architecture, best first, with "lacks "
# before those that this machine cannot run.
function(lacuna_instruction_sets result)
  try_run(ran compiled ${PROJECT_BINARY_DIR}/instruction_sets
    ${PROJECT_SOURCE_DIR}/cmake/instruction_sets.cpp
    LINK_LIBRARIES hwy::hwy COMPILE_OUTPUT_VARIABLE compiler_output RUN_OUTPUT_VARIABLE sets)
  if(NOT compiled OR NOT ran EQUAL 0)
    message(FATAL_ERROR "cmake/instruction_sets.cpp does not run: ${compiler_output}")
  endif()
  set(${result} ${sets} PARENT_SCOPE)
endfunction()
