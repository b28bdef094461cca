# Parts of documents other than YAML and C++: commands, which are compared with --help, shell blocks and Python, which
# are run, the quickstart's output, which is compared, the tables of a model, which are computed again, and the length of
# paragraphs.
if(LACUNA_PYTHON_PROGRAM)
  add_test(NAME docs.commands_are_understood COMMAND ${LACUNA_PYTHON_PROGRAM}
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/commands_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.commands_are_understood PROPERTIES TIMEOUT 120)
  add_test(NAME docs.shell_blocks_run COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/shell_blocks_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/shell_blocks_check)
  add_test(NAME docs.readme_shows_what_the_quickstart_prints COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/quickstart_lines_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/quickstart_check)
  set_tests_properties(docs.shell_blocks_run docs.readme_shows_what_the_quickstart_prints PROPERTIES
    TIMEOUT 600 COST 50 ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
  add_test(NAME docs.scaling_is_computed COMMAND ${LACUNA_PYTHON_PROGRAM}
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/scaling_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.scaling_is_computed PROPERTIES TIMEOUT 60)
  add_test(NAME docs.paragraphs_are_short COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/paragraphs_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.paragraphs_are_short PROPERTIES TIMEOUT 60)
  add_test(NAME docs.scripts_refuse_unknown_options COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/script_options_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.scripts_refuse_unknown_options PROPERTIES TIMEOUT 120)
  add_test(NAME docs.equal_time_is_fair COMMAND ${LACUNA_PYTHON_PROGRAM}
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/equal_time_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs.equal_time_is_fair PROPERTIES TIMEOUT 120)
endif()
# Debian's interpreter has Debian's h5py, whichever comes first in the path.
foreach(python ${LACUNA_PYTHON_PROGRAM} /usr/bin/python3)
  if(NOT LACUNA_PYTHON_WITH_H5PY AND EXISTS ${python})
    execute_process(COMMAND ${python} -c "import h5py, numpy" RESULT_VARIABLE failed
      OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(LACUNA_PYTHON_WITH_H5PY ${python})
    endif()
  endif()
endforeach()
if(LACUNA_PYTHON_WITH_H5PY)
  add_test(NAME docs.python_runs_as_it_stands COMMAND ${LACUNA_PYTHON_WITH_H5PY}
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/python_blocks_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/python_check)
  set_tests_properties(docs.python_runs_as_it_stands PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "Documents: without python3-h5py, so that their Python is not run here")
endif()
# PyTorch of Debian, where it is installed, for what the guides show of it.
execute_process(COMMAND /usr/bin/python3 -c "import torch" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
if(NOT failed)
  add_test(NAME docs.interop_python_runs_as_it_stands COMMAND /usr/bin/python3 -B
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/interop_blocks_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/interop_check)
  set_tests_properties(docs.interop_python_runs_as_it_stands PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
  # Both sides of bench/peers train the same networks; their times mean nothing here.
  add_test(NAME docs.peers_train_the_same_networks COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${PROJECT_SOURCE_DIR}/bench/peers/peers.py --networks mlp gpt --threads 1 --minutes 0.01 --moment 0.01
    --program $<TARGET_FILE:lacuna_program> --out ${PROJECT_BINARY_DIR}/peers_check.tsv)
  set_tests_properties(docs.peers_train_the_same_networks PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "Documents: without python3-torch, so that interop.md's Python on PyTorch and bench/peers are not run here")
endif()
# Tables and picture of bench/peers.
if(LACUNA_PYTHON_PROGRAM)
  add_test(NAME docs.peers_are_what_was_measured COMMAND ${LACUNA_PYTHON_PROGRAM} -B
    ${PROJECT_SOURCE_DIR}/bench/peers/publish.py --check)
endif()
# The same for PIL.
foreach(python ${LACUNA_PYTHON_PROGRAM} /usr/bin/python3)
  if(NOT LACUNA_PYTHON_WITH_PIL AND EXISTS ${python})
    execute_process(COMMAND ${python} -c "import numpy, PIL" RESULT_VARIABLE failed OUTPUT_QUIET
      ERROR_QUIET)
    if(NOT failed)
      set(LACUNA_PYTHON_WITH_PIL ${python})
    endif()
  endif()
endforeach()
if(LACUNA_PYTHON_WITH_PIL)
  add_test(NAME docs.images_and_sounds COMMAND ${LACUNA_PYTHON_WITH_PIL}
    ${CMAKE_CURRENT_SOURCE_DIR}/docs/images_and_sounds_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/images_and_sounds)
  set_tests_properties(docs.images_and_sounds PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "Documents: without python3-pil, so that preparing images is not compared here")
endif()
