#include "engine/cpu/symmetric.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/cpu/blas.h"

namespace tessera {

SymmetricEigen symmetric_eigen(std::vector<double> a, int64_t n, bool wants_vectors) {
  check(n >= 1 && n <= 32768 && std::ssize(a) == n * n, "symmetric_eigen: ", a.size(),
        " numbers for n = ", n);
  check(std::all_of(a.begin(), a.end(), [](double x) { return std::isfinite(x); }),
        "symmetric_eigen: the matrix holds numbers that are not finite");
  const char job = wants_vectors ? 'V' : 'N', upper = 'U';  // of Fortran's columns: the lower of our rows
  const int size = static_cast<int>(n), query = -1;
  std::vector<double> values(static_cast<size_t>(n)), work(1);
  std::vector<int> integers(1);
  int trouble = 0;
  blas().dsyevd(&job, &upper, &size, a.data(), &size, values.data(), work.data(), &query, integers.data(),
                &query, &trouble);
  work.resize(static_cast<size_t>(work[0]));
  integers.resize(static_cast<size_t>(integers[0]));
  const int room = static_cast<int>(work.size()), integer_room = static_cast<int>(integers.size());
  blas().dsyevd(&job, &upper, &size, a.data(), &size, values.data(), work.data(), &room, integers.data(),
                &integer_room, &trouble);
  check(trouble == 0, "symmetric_eigen: LAPACK's dsyevd ends with ", trouble);
  if (!wants_vectors) a.clear();  // otherwise its column k, our row k, is eigenvector k
  return {std::move(values), std::move(a)};
}

}  // namespace tessera
