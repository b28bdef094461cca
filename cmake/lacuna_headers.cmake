# The headers that are installed, by the lists beside this file, and the two headers made of them:
# lacuna/lacuna.h and lacuna/extend.h. A line "# ..." of a list is a comment, in the umbrella too;
# one with a "*" stands for all headers that match.
function(lacuna_umbrella list umbrella headers_variable)
  set(path ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${list})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(STRINGS ${path} lines)
  set(headers "")
  set(text "// Made from cmake/${list}.\n#pragma once\n${ARGN}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^# (.*)$")
      string(APPEND text "\n// ${CMAKE_MATCH_1}\n")
    elseif(line)
      file(GLOB found RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${line})
      foreach(header IN LISTS found)
        string(APPEND text "#include \"lacuna/${header}\"\n")
        list(APPEND headers ${header})
      endforeach()
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/umbrella/lacuna/${umbrella} CONTENT "${text}" @ONLY)
  set(${headers_variable} ${headers} PARENT_SCOPE)
endfunction()

lacuna_umbrella(public_headers.txt lacuna.h LACUNA_PUBLIC_HEADERS)
lacuna_umbrella(extension_headers.txt extend.h LACUNA_EXTENSION_HEADERS
  "\n#include \"lacuna/lacuna.h\"\n")

# A shared library exports what installed headers declare and hides the rest: its sources find these
# headers first, each of which includes one of the sources' own.
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  foreach(header IN LISTS LACUNA_PUBLIC_HEADERS LACUNA_EXTENSION_HEADERS)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/exported/lacuna/${header} CONTENT
"#pragma once
#pragma GCC visibility push(default)
#include \"${PROJECT_SOURCE_DIR}/${header}\"
#pragma GCC visibility pop
")
  endforeach()
endif()
