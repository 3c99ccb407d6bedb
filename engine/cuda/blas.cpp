#include "engine/cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/scratch.h"
#include "engine/cuda/algorithm_file.h"
#include "engine/cuda/descriptors.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/parts.h"
#include "engine/cuda/side_stream.h"

namespace tessera {

namespace {

bool tf32_allowed = false;

void expect_blas(cublasStatus_t status, const char* what, const MatrixProduct& p) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("cublas: ", what, ": ", cublasLtGetStatusString(status), ", product [", p.m, ", ", p.k, "] x [", p.k,
       ", ", p.n, "] x ", p.count);
}

template <class T>
inline constexpr cudaDataType_t data_type = std::is_same_v<T, float>    ? CUDA_R_32F
                                            : std::is_same_v<T, double> ? CUDA_R_64F
                                                                        : CUDA_R_16BF;

template <class T> cublasComputeType_t compute_type() {
  if constexpr (std::is_same_v<T, double>)
    return CUBLAS_COMPUTE_64F;
  else if constexpr (std::is_same_v<T, float>)
    return tf32_allowed ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  else
    return CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu_tanh:
      return CUBLASLT_EPILOGUE_GELU;
    case Epilogue::bias_gelu_tanh:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// The largest power of two, at most 256, that divides the pointer's address.
uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(256, address & (~address + 1)));
}

// The handle; a workspace for products on the main stream and one for those on a side stream; and for each
// kind of product so far the algorithms that may do it, the likely fastest first (none where cuBLASLt has
// none).
struct Blas {
  static constexpr size_t workspace_bytes = size_t{32} << 20;
  using Key = std::tuple<int, int, int, int, bool, bool, bool, int64_t, int64_t, int64_t, int64_t, int64_t,
                         int64_t, int64_t, int64_t, int64_t, int64_t, uint32_t, uint32_t, uint32_t, uint32_t>;

  cublasLtHandle_t handle{};
  std::array<Storage, 2> workspaces{Storage(Device::cuda, workspace_bytes),
                                    Storage(Device::cuda, workspace_bytes)};
  std::map<Key, std::vector<cublasLtMatmulAlgo_t>> algorithms;
  std::mutex mutex;

  Blas() { expect_blas(cublasLtCreate(&handle), "create", {}); }
};

Blas& blas() {
  static Blas& one = *new Blas;
  return one;
}

// cuBLAS takes column-major matrices: a row-major c = op(a) op(b) is c^T = op(b)^T op(a)^T to it. So its
// first factor is b.
// C is the type of c.
template <class T, class C = T> class Call {
 public:
  Call(const MatrixProduct& p, const T* a, const T* b, C* c, bool add, Epilogue epilogue, const T* bias)
      : p_(p), a_(a), b_(b), c_(c), bias_(bias), add_(add), epilogue_(epilogue) {
    expect_blas(cublasLtMatmulDescCreate(operation_.address(), compute_type<T>(), data_type<Wide<T>>),
                "operation", p);
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(epilogue));
    if (bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
    make_layout<T>(first_, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.ldb, p.b_step);
    make_layout<T>(second_, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.lda, p.a_step);
    make_layout<C>(result_, p.n, p.m, p.ldc, p.c_step);
  }

  // Returns false where cuBLASLt has no algorithm for it.
  bool run() {
    Blas& own = blas();
    const std::lock_guard lock(own.mutex);
    auto found = own.algorithms.find(key());
    if (found == own.algorithms.end()) {
      found = own.algorithms.emplace(key(), candidates(own)).first;
      if (AlgorithmFile* file = AlgorithmFile::chosen()) put_fastest_first(found->second, own, *file);
    }
    // The heuristic may offer what the product then refuses: such an algorithm is not asked again.
    for (std::vector<cublasLtMatmulAlgo_t>& left = found->second; !left.empty(); left.erase(left.begin())) {
      const cublasStatus_t status = run_with(left.front(), own, c_);
      if (status == CUBLAS_STATUS_SUCCESS) return true;
      if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
        expect_blas(status, "product", p_);
    }
    return false;
  }

 private:
  cublasStatus_t run_with(const cublasLtMatmulAlgo_t& algorithm, const Blas& own, C* c) const {
    const Wide<T> alpha = 1, beta = add_ ? 1 : 0;
    return cublasLtMatmul(own.handle, operation_, &alpha, b_, first_, a_, second_, &beta, c, result_, c,
                          result_, &algorithm, const_cast<void*>(own.workspaces[on_side_stream()].data()),
                          Blas::workspace_bytes, stream());
  }

  // Puts the algorithm that the file has for this product first or, outside of captures, the fastest one,
  // which the file then has.
  void put_fastest_first(std::vector<cublasLtMatmulAlgo_t>& algorithms, const Blas& own,
                         AlgorithmFile& file) {
    const std::string name =
        std::apply([](const auto&... part) { return ((std::to_string(part) + " ") + ...); }, key());
    if (const auto known = file.find(name)) {
      algorithms.insert(algorithms.begin(), *known);
      return;
    }
    if (Graph::capturing() || algorithms.empty()) return;
    const Workspace<C, Device::cuda> c((p_.count - 1) * p_.c_step + p_.m * p_.ldc);
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const double time = time_of(algorithms[i], own, c.data());
      if (time < least) best = i, least = time;
    }
    std::rotate(algorithms.begin(), algorithms.begin() + static_cast<std::ptrdiff_t>(best),
                algorithms.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    file.add(name, algorithms.front());
  }

  // The least time of four runs, the first of which loads the kernel; infinite where it is refused.
  double time_of(const cublasLtMatmulAlgo_t& algorithm, const Blas& own, C* c) const {
    const std::unique_ptr<LapClock> clock = make_stream_clock();
    for (int run = 0; run < 4; ++run) {
      clock->mark();
      if (run_with(algorithm, own, c) != CUBLAS_STATUS_SUCCESS)
        return std::numeric_limits<double>::infinity();
    }
    clock->mark();
    const std::vector<double> laps = clock->laps();
    return *std::min_element(laps.begin() + 1, laps.end());
  }

  template <class Value> void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    expect_blas(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value), "operation", p_);
  }

  template <class E>
  void make_layout(Layout& layout, int64_t rows, int64_t columns, int64_t stride, int64_t step) {
    expect_blas(cublasLtMatrixLayoutCreate(layout.address(), data_type<E>, static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), stride),
                "layout", p_);
    if (p_.count == 1) return;
    const int32_t count = static_cast<int32_t>(p_.count);
    expect_blas(
        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "layout", p_);
    expect_blas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                                 sizeof step),
                "layout", p_);
  }

  Blas::Key key() const {
    return {static_cast<int>(data_type<T>),
            static_cast<int>(data_type<C>),
            static_cast<int>(compute_type<T>()),
            static_cast<int>(epilogue_),
            p_.transpose_a,
            p_.transpose_b,
            add_,
            p_.m,
            p_.n,
            p_.k,
            p_.lda,
            p_.ldb,
            p_.ldc,
            p_.count,
            p_.a_step,
            p_.b_step,
            p_.c_step,
            alignment(a_),
            alignment(b_),
            alignment(c_),
            alignment(bias_)};
  }

  std::vector<cublasLtMatmulAlgo_t> candidates(const Blas& own) {
    Preference preference;
    expect_blas(cublasLtMatmulPreferenceCreate(preference.address()), "preference", p_);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      expect_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                  "preference", p_);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{Blas::workspace_bytes});
    // Excludes CUBLASLT_REDUCTION_SCHEME_INPLACE, which adds in the order of arrival, and OUTPUT_TYPE, which
    // rounds the parts of a split k to bf16 before it adds them.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(b_));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(a_));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(c_));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(c_));
    std::array<cublasLtMatmulHeuristicResult_t, 8> results{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(own.handle, operation_, first_, second_, result_, result_, preference,
                                       static_cast<int>(results.size()), results.data(), &found);
    const bool refusable = status == CUBLAS_STATUS_NOT_SUPPORTED || epilogue_ != Epilogue::none;
    if (!refusable) expect_blas(status, "choice of an algorithm", p_);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
    for (const auto& result : std::span(results).first(static_cast<size_t>(found)))
      if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
    return algorithms;
  }

  MatrixProduct p_;
  const T *a_, *b_;
  C* c_;
  const T* bias_;
  bool add_;
  Epilogue epilogue_;
  Operation operation_;
  Layout first_, second_, result_;
};

}  // namespace

template <class T>
bool multiply_with(Epilogue epilogue, const MatrixProduct& product, const T* a, const T* b, T* c,
                   const T* bias) {
  if (product.m == 0 || product.n == 0 || product.count == 0) return true;
  check(product.k > 0, "cublas: a product of depth 0");
  if (bias && alignment(bias) < 16) return false;  // cuBLASLt's epilogues read the bias 16 bytes at a time
  return Call<T>(product, a, b, c, false, epilogue, bias).run();
}

template <class T> void multiply(const MatrixProduct& product, const T* a, const T* b, T* c, bool add) {
  if (product.m == 0 || product.n == 0 || product.count == 0) return;
  check(product.k > 0, "cublas: a product of depth 0");
  const T* no_bias = nullptr;
  if (!Call<T>(product, a, b, c, add, Epilogue::none, no_bias).run())
    expect_blas(CUBLAS_STATUS_NOT_SUPPORTED, "choice of an algorithm", product);
}

template <class T> void multiply_wide(const MatrixProduct& product, const T* a, const T* b, Wide<T>* c) {
  const T* no_bias = nullptr;
  if (!Call<T, Wide<T>>(product, a, b, c, false, Epilogue::none, no_bias).run())
    expect_blas(CUBLAS_STATUS_NOT_SUPPORTED, "choice of an algorithm", product);
}

void set_tf32(bool allowed) { tf32_allowed = allowed; }

TESSERA_FOR_FLOATS(multiply)
TESSERA_FOR_FLOATS(multiply_with)
TESSERA_FOR_FLOATS(multiply_wide)

}  // namespace tessera
