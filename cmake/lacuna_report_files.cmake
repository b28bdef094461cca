# What `lacuna report` puts into its pages, as a source of its room: its own style and script, and uPlot
# (third_party/uplot), whose files must be those of its README.
set(report_files
  page_css|${PROJECT_SOURCE_DIR}/framework/report/page.css
  page_js|${PROJECT_SOURCE_DIR}/framework/report/page.js
  uplot_js|${PROJECT_SOURCE_DIR}/third_party/uplot/uPlot.iife.min.js|19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f
  uplot_css|${PROJECT_SOURCE_DIR}/third_party/uplot/uPlot.min.css|df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04
  uplot_license|${PROJECT_SOURCE_DIR}/third_party/uplot/LICENSE)
set(embedded_files ${PROJECT_BINARY_DIR}/embedded_files.cpp)
list(JOIN report_files "," report_file_list)
string(REGEX MATCHALL "[|]/[^|;]*" report_paths "${report_files}")
list(TRANSFORM report_paths REPLACE "^[|]" "")
add_custom_command(OUTPUT ${embedded_files}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded_files}
    -DHEADER=lacuna/framework/report/embedded_files.hpp "-DFILES=${report_file_list}"
    -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${report_paths} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake VERBATIM)
target_sources(lacuna_made PRIVATE ${embedded_files})
