# register_layers() (layers/builtin.hpp), as a source of its room: a call of each function
# `void register_NAME(LayerRegistry& registry)` in the sources of layers/.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE layer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/layers/*.cpp)
  set(layer_list ${PROJECT_BINARY_DIR}/registered_layers.cpp)
  list(JOIN layer_sources "," layer_source_list)
  add_custom_command(OUTPUT ${layer_list}
    COMMAND ${CMAKE_COMMAND} -DOUT=${layer_list} "-DSOURCES=${layer_source_list}"
      -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${layer_sources} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  target_sources(lacuna_made PRIVATE ${layer_list})
  return()
endif()

set(declarations "")
set(calls "")
string(REPLACE "," ";" sources "${SOURCES}")
foreach(source IN LISTS sources)
  file(STRINGS ${source} definitions REGEX "^void register_[a-z0-9_]+\\(LayerRegistry& registry\\) {")
  foreach(definition IN LISTS definitions)
    string(REGEX MATCH "register_[a-z0-9_]+" name "${definition}")
    string(APPEND declarations "void ${name}(LayerRegistry& registry);\n")
    string(APPEND calls "  ${name}(registry);\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${OUT} CONTENT "// Made by cmake/lacuna_layers.cmake.
#include \"lacuna/layers/builtin.hpp\"

namespace lacuna {

${declarations}
void register_layers(LayerRegistry& registry) {
${calls}}

}  // namespace lacuna
" @ONLY)
