# Random configurations with fixed seeds, and what must hold for each of them (properties/run.py).
# Not under sanitizers: the runner limits a process's address space, of which they take terabytes.
foreach(python ${LACUNA_PYTHON_PROGRAM} /usr/bin/python3)
  if(NOT LACUNA_PYTHON_WITH_YAML AND EXISTS ${python})
    execute_process(COMMAND ${python} -c "import h5py, numpy, yaml" RESULT_VARIABLE failed
      OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(LACUNA_PYTHON_WITH_YAML ${python})
    endif()
  endif()
endforeach()
if(LACUNA_SANITIZE)
  message(NOTICE "Properties: random configurations are not run under sanitizers")
elseif(LACUNA_PYTHON_WITH_YAML)
  add_test(NAME properties.of_random_configurations COMMAND ${LACUNA_PYTHON_WITH_YAML} -B
    ${CMAKE_CURRENT_SOURCE_DIR}/properties/run.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_BINARY_DIR}/properties_check --count 18 --seed 1 --extremes 4)
  set_tests_properties(properties.of_random_configurations PROPERTIES TIMEOUT 600 PROCESSORS 2
    COST 50)
else()
  message(NOTICE "Properties: without python3-h5py and python3-yaml, so that random configurations are not run here")
endif()
