#pragma once

// The part of cuBLASLt that engine/cuda/blas.cpp calls, in plain loops. Matrices are column-major, as cuBLAS
// has them.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_NOT_SUPPORTED };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_64F, CUDA_R_16BF };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT,
  CUBLASLT_EPILOGUE_BIAS,
  CUBLASLT_EPILOGUE_GELU,
  CUBLASLT_EPILOGUE_GELU_BIAS
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
                          CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4;

namespace emulator {
struct Operation {
  cublasComputeType_t compute;
  bool transpose_a = false, transpose_b = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, stride;
  int32_t count = 1;
  int64_t step = 0;
};
inline double read(const void* data, cudaDataType_t type, int64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  if (type == CUDA_R_64F) return static_cast<const double*>(data)[at];
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(data)[at]} << 16);
}
inline void write(void* data, cudaDataType_t type, int64_t at, double value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = static_cast<float>(value);
  } else if (type == CUDA_R_64F) {
    static_cast<double*>(data)[at] = value;
  } else {
    const uint32_t u = std::bit_cast<uint32_t>(static_cast<float>(value));
    static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
}
}  // namespace emulator

using cublasLtHandle_t = int*;
using cublasLtMatmulDesc_t = emulator::Operation*;
using cublasLtMatrixLayout_t = emulator::Layout*;
using cublasLtMatmulPreference_t = int*;
struct cublasLtMatmulAlgo_t {
  int number = 0;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  cublasStatus_t state = CUBLAS_STATUS_SUCCESS;
};

inline const char* cublasLtGetStatusString(cublasStatus_t) { return "not supported by the emulator"; }
inline size_t cublasLtGetVersion() { return 130000; }
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t*) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                               cudaDataType_t) {
  return *made = new emulator::Operation{compute}, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t it) {
  return delete it, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t it,
                                                     cublasLtMatmulDescAttributes_t attribute,
                                                     const void* value, size_t) {
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
    it->transpose_a = *static_cast<const cublasOperation_t*>(value) == CUBLAS_OP_T;
  else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB)
    it->transpose_b = *static_cast<const cublasOperation_t*>(value) == CUBLAS_OP_T;
  else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
    it->epilogue = *static_cast<const cublasLtEpilogue_t*>(value);
  else
    it->bias = *static_cast<const void* const*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type,
                                                 uint64_t rows, uint64_t columns, int64_t stride) {
  *made = new emulator::Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), stride};
  return stride < static_cast<int64_t>(rows) ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t it) {
  return delete it, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t it,
                                                       cublasLtMatrixLayoutAttribute_t attribute,
                                                       const void* value, size_t) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    it->count = *static_cast<const int32_t*>(value);
  else
    it->step = *static_cast<const int64_t*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t*) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                           cublasLtMatmulPreferenceAttributes_t, const void*,
                                                           size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
// Double has no epilogues here, so that the tests also run the code that does without them. The first of two
// algorithms is one that some products refuse when they are run, as on a GPU.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int wanted,
                                                     cublasLtMatmulHeuristicResult_t* results, int* found) {
  const bool plain = operation->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  *found = plain || operation->compute != CUBLAS_COMPUTE_64F ? std::min(wanted, 2) : 0;
  for (int i = 0; i < *found; ++i) results[i] = {{i}};
  return *found ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                                     const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                                     cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                                     cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t,
                                     const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                                     cudaStream_t stream) {
  using namespace emulator;
  const Operation op = *operation;
  const Layout la = *a_layout, lb = *b_layout, lc = *c_layout;
  const int64_t depth = op.transpose_a ? la.rows : la.columns;
  if (depth != (op.transpose_b ? lb.columns : lb.rows) ||
      lc.rows != (op.transpose_a ? la.columns : la.rows) ||
      lc.columns != (op.transpose_b ? lb.rows : lb.columns))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (algorithm->number == 0 && (depth + lc.rows + lc.columns) % 3 == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool wide = op.compute == CUBLAS_COMPUTE_64F;
  const double al = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double be = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  const bool bias = op.epilogue == CUBLASLT_EPILOGUE_BIAS || op.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
  const bool gelu = op.epilogue == CUBLASLT_EPILOGUE_GELU || op.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
  if (bias && reinterpret_cast<uintptr_t>(op.bias) % 16 != 0)
    refuse("cuBLASLt was given a bias that is not aligned");
  const auto multiply = [=] {
    for (int64_t n = 0; n < lc.count; ++n)
      for (int64_t j = 0; j < lc.columns; ++j)
        for (int64_t i = 0; i < lc.rows; ++i) {
          double sum = 0;
          for (int64_t k = 0; k < depth; ++k)
            sum += read(a, la.type, n * la.step + (op.transpose_a ? i * la.stride + k : k * la.stride + i)) *
                   read(b, lb.type, n * lb.step + (op.transpose_b ? k * lb.stride + j : j * lb.stride + k));
          const int64_t at = n * lc.step + j * lc.stride + i;
          sum = al * sum + (be == 0 ? 0 : be * read(c, lc.type, at));
          if (bias) sum += read(op.bias, lc.type, i);
          if (gelu) sum *= 1 / (1 + std::exp(-1.5957691216057308 * (sum + 0.044715 * sum * sum * sum)));
          write(d, lc.type, at, sum);
        }
  };
  stream->take(multiply, true);
  return CUBLAS_STATUS_SUCCESS;
}
