#pragma once

// The build includes this header before each file of kernels for AVX-512-BF16, which then is compiled for a
// processor with AVX2 and calls the functions of avx512.h instead of instructions.

#include "tests/emulator/avx512.h"

// The kernels call the emulated instructions by their own names. GCC's header defines functions of these
// names, and macros where it does not optimize.
#undef _mm512_reduce_ps
#undef _mm512_cmp_ps_mask
#undef _mm512_slli_epi32
#undef _mm512_shuffle_i32x4
#undef _mm512_extracti64x4_epi64
#undef _mm512_inserti64x4
#define _mm512_loadu_ps emulated::load<__m512>
#define _mm512_loadu_si512 emulated::load<__m512i>
#define _mm512_load_ps emulated::load_aligned<__m512>
#define _mm512_load_si512 emulated::load_aligned<__m512i>
#define _mm512_storeu_ps emulated::store<__m512>
#define _mm512_storeu_si512 emulated::store<__m512i>
#define _mm512_maskz_loadu_ps emulated::load_wanted<__m512, float>
#define _mm512_maskz_loadu_epi16 emulated::load_wanted<__m512i, uint16_t>
#define _mm256_maskz_loadu_epi16 emulated::load_wanted<__m256i, uint16_t>
#define _mm512_mask_storeu_epi16 emulated::store_wanted<uint16_t, __m512i>
#define _mm256_mask_storeu_epi16 emulated::store_wanted<uint16_t, __m256i>
#define _mm512_setzero_ps() (__m512{})
#define _mm512_setzero_si512() (__m512i{})
#define _mm512_set1_ps emulated::set1_ps
#define _mm512_set1_epi32 emulated::set1_epi32
#define _mm512_set1_epi16 emulated::set1_epi16
#define _mm512_set_epi16 emulated::set_epi16
#define _mm512_mul_ps emulated::mul_ps
#define _mm512_add_ps emulated::add_ps
#define _mm512_fmadd_ps emulated::fmadd_ps
#define _mm512_max_ps emulated::max_ps
#define _mm512_abs_ps emulated::abs_ps
#define _mm512_sqrt_ps emulated::sqrt_ps
#define _mm512_reduce_add_ps emulated::reduce_add_ps
#define _mm512_reduce_max_ps emulated::reduce_max_ps
#define _mm512_reduce_ps(x, control) emulated::reduce_ps<control>(x)
#define _mm512_scalef_ps emulated::scalef_ps
#define _mm512_mask_mov_ps emulated::mask_mov_ps
#define _mm512_maskz_mov_ps emulated::maskz_mov_ps
#define _mm512_maskz_sub_ps emulated::maskz_sub_ps
#define _mm512_movepi32_mask emulated::movepi32_mask
#define _mm512_cmp_ps_mask(a, b, comparison) emulated::cmp_ps_mask<comparison>(a, b)
#define _mm512_or_si512 emulated::or_si512
#define _mm512_and_si512 emulated::and_si512
#define _mm512_add_epi16 emulated::add_epi16
#define _mm512_slli_epi32(x, places) emulated::slli_epi32<places>(x)
#define _mm512_cvtepu16_epi32 emulated::cvtepu16_epi32
#define _mm512_castsi512_ps emulated::bits<__m512, __m512i>
#define _mm512_permutex2var_epi16 emulated::permutex2var_epi16
#define _mm512_permutexvar_epi16 emulated::permutexvar_epi16
#define _mm512_unpacklo_epi32 emulated::unpack_epi32<0>
#define _mm512_unpackhi_epi32 emulated::unpack_epi32<2>
#define _mm512_unpacklo_epi64 emulated::unpack_epi64<0>
#define _mm512_unpackhi_epi64 emulated::unpack_epi64<1>
#define _mm512_shuffle_i32x4(a, b, control) emulated::shuffle_i32x4<control>(a, b)
#define _mm512_extracti64x4_epi64(x, half) emulated::extracti64x4_epi64<half>(x)
#define _mm512_inserti64x4(x, y, half) emulated::inserti64x4<half>(x, y)
#define _mm512_castsi512_si256 emulated::castsi512_si256
#define _mm512_castsi256_si512 emulated::castsi256_si512
#define _mm512_dpbf16_ps emulated::dpbf16_ps
#define _mm512_cvtneps_pbh emulated::cvtneps_pbh
#define _mm512_cvtne2ps_pbh emulated::cvtne2ps_pbh

// The emulated kernels need names of their own, because one program holds them and the processor's.
#define avx512_bf16_kernels table_of_emulated_avx512
#define interleave_pairs emulated_interleave_pairs
#define interleave_transposed_pairs emulated_interleave_transposed_pairs
#define left_pairs_of_transposed emulated_left_pairs_of_transposed
#define left_rows_of_transposed emulated_left_rows_of_transposed
#define softmax512 emulated_softmax512
#define softmax_backward512 emulated_softmax_backward512
#define probabilities512 emulated_probabilities512
#define score_gradients512 emulated_score_gradients512
#define window_scores512 emulated_window_scores512
#define window_values512 emulated_window_values512
#define window_gradients512 emulated_window_gradients512
#define activate512 emulated_activate512
#define norm512 emulated_norm512
#define layer_norm512 emulated_layer_norm512
#define layer_norm_backward512 emulated_layer_norm_backward512
#define depthwise512 emulated_depthwise512
#define depthwise_gradient512 emulated_depthwise_gradient512
#define pixels_to_points512 emulated_pixels_to_points512
#define outputs_of_points512 emulated_outputs_of_points512

#ifndef __AVX512BF16__
#define __AVX512BF16__
#endif
