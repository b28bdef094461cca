# Trainings held against PyTorch's figures, which are stored: NumPy makes data and weights. After
# document_checks.cmake, which finds a Python with NumPy.
if(LACUNA_PYTHON_WITH_H5PY)
  add_test(NAME parity.trains_as_pytorch_does COMMAND ${LACUNA_PYTHON_WITH_H5PY}
    ${CMAKE_CURRENT_SOURCE_DIR}/parity/parity_test.py $<TARGET_FILE:lacuna_program>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/parity_check)
  set_tests_properties(parity.trains_as_pytorch_does PROPERTIES TIMEOUT 300
    ENVIRONMENT "LACUNA_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
else()
  message(NOTICE "Parity: without python3-h5py and its NumPy, so that no training is held against PyTorch's figures")
endif()
