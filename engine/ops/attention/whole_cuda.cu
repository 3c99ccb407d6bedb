// Attention's forward pass for heads that one block holds whole.

#include "engine/ops/attention/whole_cuda.h"

namespace tessera {

namespace {

// A warp's scores with all keys, which become P: exp(score - the largest of its row), computed as powers
// of 2.
template <class Head> struct WholeScores {
  Fragments<float, 2> s[Head::tiles];
  float most[2], sum[2] = {0, 0};  // of the lane's rows: the largest score, and the sum of P

  __device__ WholeScores(const LeftRows<Head>& q, const bf16* k, float factor, const WholeMask<Head>& mask) {
    constexpr float none = -std::numeric_limits<float>::infinity();
    most[0] = most[1] = none;
#pragma unroll
    for (int tile = 0; tile < Head::tiles; ++tile) {
      q.multiply(k + tile * warp_rows * Head::stride, s[tile]);
      each_number<Head>(tile, [&](int n, int e) { s[tile][n][e] *= factor; });
      mask.apply(tile, s[tile], none);
      each_number<Head>(tile, [&](int n, int e) { most[e / 2] = std::fmax(s[tile][n][e], most[e / 2]); });
    }
    take_softmax();
  }

 private:
  __device__ void take_softmax() {
    float base[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      most[half] = row_all<Most>(most[half]);
      base[half] = finite_base(most[half]);
    }
#pragma unroll
    for (int tile = 0; tile < Head::tiles; ++tile)
      each_number<Head>(tile, [&](int n, int e) {
        s[tile][n][e] = fast_exp2(s[tile][n][e] - base[e / 2]);
        sum[e / 2] += s[tile][n][e];
      });
    for (float& half : sum) half = row_all<Plus>(half);
  }
};

// Block (image, head). y [B, N, H d], lse [B, H, N] or null.
template <class Head>
__global__ void __launch_bounds__(Head::threads, Head::forward_residents)
    attend_head(AttentionOperands<bf16> in, bf16* y, float* lse) {
  wait_for_previous_kernel();
  const WholePlace place(in.heads);
  const int first = own_warp() * warp_rows;
  bf16 *const q = shared_memory<bf16>(), *const k = q + Head::elements, *const v = k + Head::elements;
  load_heads<Head>(place, {in.q, in.k, in.v}, in.keys, in.d, q);
  __syncthreads();
  bf16* const own = q + first * Head::stride;
  const float factor = exp_ready<bf16>(in.terms.scale_term(place.head).factor);
  const WholeScores<Head> scores(LeftRows<Head>(own), k, factor, WholeMask<Head>(in));

  Fragments<float, Head::depth / 8> sum;
  clear<float, Head::depth / 8>(sum);
#pragma unroll
  for (int tile = 0; tile < Head::tiles; ++tile)
    multiply_fragments<Head::depth, bf16, 2>(scores.s[tile], v + tile * warp_rows * Head::stride, 2, sum);
  const float share[2] = {fast_reciprocal(scores.sum[0]), fast_reciprocal(scores.sum[1])};
  store_rows<Head>(
      place, sum, [&](int half) { return share[half]; }, TokenHeads<bf16>{y, int64_t{in.heads} * in.d}, first,
      in.keys, in.d, own);
  if (!lse || own_lane() % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (const int i = first + own_lane() / 4 + 8 * half; i < in.keys)
      lse[int64_t{blockIdx.x} * in.keys + i] =
          (scores.most[half] + fast_log2(scores.sum[half])) / exp_ready<bf16>(1);
}

}  // namespace

bool attend_whole(const AttentionOperands<bf16>& operands, bf16* y, float* lse) {
  if (!aligned(y, 8)) return false;
  return with_whole(operands, [&]<class Head>(Head) {
    launch(attend_head<Head>,
           LaunchGrid{blocks_of(operands.images * operands.heads), dim3(Head::threads),
                      3 * Head::elements * sizeof(bf16)},
           operands, y, lse);
  });
}

}  // namespace tessera
