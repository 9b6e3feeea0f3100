# foreshard_embed(target FILE file SYMBOL name): the text of a file as `extern const std::string_view name` of namespace
# foreshard::embedded, linked into the target, so that no binary needs its source folder. A raw string literal holds 64 KiB at most
# in some compilers, so the text is cut.
function(foreshard_embed target)
  cmake_parse_arguments(ARG "" "FILE;SYMBOL" "" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ARG_FILE})
  file(READ ${PROJECT_SOURCE_DIR}/${ARG_FILE} text)
  string(LENGTH "${text}" length)
  set(literals "")
  foreach(first RANGE 0 ${length} 8000)
    string(SUBSTRING "${text}" ${first} 8000 piece)
    string(APPEND literals "R\"embedded(${piece})embedded\"\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/embedded/${ARG_SYMBOL}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
       "#include <string_view>\nnamespace foreshard::embedded {\nextern const std::string_view ${ARG_SYMBOL};\nconst std::string_view ${ARG_SYMBOL} =\n${literals};\n}\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
