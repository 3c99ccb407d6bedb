# cmake -DOUTPUT=recipes.cpp -P embed.cmake: writes a C++ file that holds every file of this folder.
file(GLOB recipes ${CMAKE_CURRENT_LIST_DIR}/*.json)
set(rows "")
foreach(recipe IN LISTS recipes)
  get_filename_component(name ${recipe} NAME_WE)
  file(READ ${recipe} text)
  string(APPEND rows "      {\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"apps/training/recipe.h\"

namespace tessera {

const std::vector<RecipeFile>& recipe_files() {
  static const std::vector<RecipeFile> files{
${rows}  };
  return files;
}

}  // namespace tessera
")
