# cmake -DOUTPUT=page_files.cpp -P embed.cmake: writes a C++ file that holds the page's files of this folder. A
# literal has at most some thousand characters and ends with a line.
file(GLOB files ${CMAKE_CURRENT_LIST_DIR}/*.html ${CMAKE_CURRENT_LIST_DIR}/*.css ${CMAKE_CURRENT_LIST_DIR}/*.js
     ${CMAKE_CURRENT_LIST_DIR}/files.txt)
set(most 8000)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  set(literals "std::string()")
  while(NOT text STREQUAL "")
    string(SUBSTRING "${text}" 0 ${most} piece)
    string(LENGTH "${text}" left)
    if(left GREATER most)
      string(FIND "${piece}" "\n" end REVERSE)
      math(EXPR end "${end} + 1")
      if(end EQUAL 0)
        message(FATAL_ERROR "${file}: a line of more than ${most} characters")
      endif()
      string(SUBSTRING "${text}" 0 ${end} piece)
    else()
      set(end ${left})
    endif()
    string(SUBSTRING "${text}" ${end} -1 text)
    string(APPEND literals "\n         + R\"tesserapage(${piece})tesserapage\"")
  endwhile()
  string(APPEND rows "      {\"${name}\", ${literals}},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"apps/inspector/page_files.h\"

namespace tessera {

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> files{
${rows}  };
  return files;
}

}  // namespace tessera
")
