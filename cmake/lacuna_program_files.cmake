# What the program has of other files, and what is made of the program: the reference of
# configuration keys is part of it, as keys are completed from it; completions of shells and the manual
# page are printed by it, and installed with it.
set(config_reference ${PROJECT_BINARY_DIR}/config_reference.cpp)
add_custom_command(OUTPUT ${config_reference}
  COMMAND ${CMAKE_COMMAND} -DOUT=${config_reference}
    -DHEADER=lacuna/framework/program/settings/documented_keys.hpp
    "-DFILES=config_reference|${PROJECT_SOURCE_DIR}/docs/reference/config.md"
    -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/docs/reference/config.md
    ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake VERBATIM)
target_sources(lacuna_made PRIVATE ${config_reference})

# After each link, so that they are there wherever the program is.
if(NOT CMAKE_CROSSCOMPILING)
  set(made ${PROJECT_BINARY_DIR}/made_by_program)
  file(MAKE_DIRECTORY ${made})
  add_custom_command(TARGET lacuna_program POST_BUILD
    COMMAND lacuna_program help --man > ${made}/lacuna.1
    COMMAND lacuna_program completion bash > ${made}/lacuna
    COMMAND lacuna_program completion zsh > ${made}/_lacuna
    COMMAND lacuna_program completion fish > ${made}/lacuna.fish VERBATIM)
  install(FILES ${made}/lacuna.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${made}/lacuna DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    COMPONENT program)
  install(FILES ${made}/_lacuna DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
    COMPONENT program)
  install(FILES ${made}/lacuna.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT program)
endif()
