#include "data/formats/mat.h"
#include "engine/core/error.h"

#ifdef TESSERA_MATIO

#include <matio.h>

#include <algorithm>
#include <memory>

namespace tessera {

namespace {

using MatFile = std::unique_ptr<mat_t, decltype(&Mat_Close)>;
using MatVar = std::unique_ptr<matvar_t, decltype(&Mat_VarFree)>;

// The array as matio has it, which must be what list_mat saw.
MatVar read_variable(const std::filesystem::path& path, const MatVariable& wanted) {
  const MatFile file(Mat_Open(path.c_str(), MAT_ACC_RDONLY), &Mat_Close);
  check(file != nullptr, path.string(), ": matio cannot open it");
  MatVar variable(Mat_VarRead(file.get(), wanted.name.c_str()), &Mat_VarFree);
  check(variable != nullptr && variable->data != nullptr, path.string(), ": matio cannot read ", wanted.name);
  const std::vector<int64_t> sizes(variable->dims, variable->dims + variable->rank);
  check(sizes == wanted.sizes && variable->class_type == wanted.array_class && !variable->isComplex &&
            variable->nbytes == static_cast<size_t>(wanted.elements() * variable->data_size),
        path.string(), ": matio reads another ", wanted.name, " than the file holds");
  return variable;
}

template <class T> std::vector<double> converted(const matvar_t& variable, int64_t count) {
  const T* values = static_cast<const T*>(variable.data);
  return {values, values + count};
}

}  // namespace

std::vector<uint8_t> read_mat_bytes(const std::filesystem::path& path, const MatVariable& variable) {
  check(variable.array_class == mat_uint8, path.string(), ": ", variable.name, " has class ",
        variable.array_class, ", not uint8 (9)");
  const MatVar read = read_variable(path, variable);
  const uint8_t* values = static_cast<const uint8_t*>(read->data);
  return {values, values + variable.elements()};
}

std::vector<double> read_mat_numbers(const std::filesystem::path& path, const MatVariable& variable) {
  const MatVar read = read_variable(path, variable);
  const int64_t count = variable.elements();
  switch (read->class_type) {
    case MAT_C_DOUBLE:
      return converted<double>(*read, count);
    case MAT_C_SINGLE:
      return converted<float>(*read, count);
    case MAT_C_INT8:
      return converted<int8_t>(*read, count);
    case MAT_C_UINT8:
      return converted<uint8_t>(*read, count);
    case MAT_C_INT16:
      return converted<int16_t>(*read, count);
    case MAT_C_UINT16:
      return converted<uint16_t>(*read, count);
    case MAT_C_INT32:
      return converted<int32_t>(*read, count);
    case MAT_C_UINT32:
      return converted<uint32_t>(*read, count);
    case MAT_C_INT64:
      return converted<int64_t>(*read, count);
    case MAT_C_UINT64:
      return converted<uint64_t>(*read, count);
    default:
      fail(path.string(), ": ", variable.name, " holds no numbers");
  }
}

}  // namespace tessera

#else

namespace tessera {

namespace {

[[noreturn]] void lacks_matio(const std::filesystem::path& path) {
  fail(path.string(), ": this build cannot read .mat files: install libmatio-dev and build again");
}

}  // namespace

std::vector<uint8_t> read_mat_bytes(const std::filesystem::path& path, const MatVariable&) {
  lacks_matio(path);
}

std::vector<double> read_mat_numbers(const std::filesystem::path& path, const MatVariable&) {
  lacks_matio(path);
}

}  // namespace tessera

#endif
