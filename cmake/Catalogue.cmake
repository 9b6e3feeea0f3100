# The machine catalogue becomes part of the library: one source with the text of every JSON file of sim/machines.
function(foreshard_embed_catalogue target)
  set(root ${PROJECT_SOURCE_DIR}/sim/machines)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/gpu_names.json ${root}/gpus/*.json ${root}/clusters/*.json ${root}/fabrics/*.json)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${root}/${file})
    file(READ ${root}/${file} text)
    string(REGEX REPLACE "\\.json$" "" name ${file})
    string(APPEND entries "    {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/catalogue/embedded_files.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"sim/catalogue.hpp\"\n
namespace foreshard::sim {\n
std::span<const EmbeddedFile> embedded_files() {
  static constexpr EmbeddedFile files[] = {\n@entries@  };
  return files;
}\n
}  // namespace foreshard::sim\n")
  target_sources(${target} PRIVATE ${source})
endfunction()
