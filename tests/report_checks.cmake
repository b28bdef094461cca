# What a run leaves to be looked at, looked at by others: a page in Chromium, event files by a reader of
# TensorBoard's format in Python's standard library.
find_program(LACUNA_PYTHON_PROGRAM python3)
find_program(LACUNA_CHROMIUM NAMES chromium chromium-browser google-chrome)
if(LACUNA_PYTHON_PROGRAM)
  add_test(NAME report.tensorboard_is_read_by_others COMMAND ${LACUNA_PYTHON_PROGRAM}
    ${CMAKE_CURRENT_SOURCE_DIR}/report/event_file_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_BINARY_DIR}/tensorboard_check)
  set_tests_properties(report.tensorboard_is_read_by_others PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "TensorBoard: without python3, whose reader of event files stays unused here")
endif()
if(LACUNA_PYTHON_PROGRAM AND LACUNA_CHROMIUM)
  add_test(NAME report.page_is_shown_by_a_browser COMMAND ${LACUNA_PYTHON_PROGRAM}
    ${CMAKE_CURRENT_SOURCE_DIR}/report/browser_test.py $<TARGET_FILE:lacuna_program>
    ${LACUNA_CHROMIUM} ${PROJECT_BINARY_DIR}/report_check)
  set_tests_properties(report.page_is_shown_by_a_browser PROPERTIES TIMEOUT 600
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "Report: without Chromium (chromium) and python3, in which pages stay unseen here")
endif()
