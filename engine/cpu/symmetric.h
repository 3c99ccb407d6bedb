#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// The eigenvalues of a symmetric matrix a [n, n], ascending, by LAPACK's dsyevd; and its eigenvectors of
// length 1, row k that of eigenvalue k. [n, n], or empty if they are not wanted.
struct SymmetricEigen {
  std::vector<double> values, vectors;
};

// Fails for numbers that are not finite. The lower triangle is read alone.
SymmetricEigen symmetric_eigen(std::vector<double> a, int64_t n, bool wants_vectors);

}  // namespace tessera
