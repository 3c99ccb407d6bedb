#include "engine/check/op_case.h"

#include <iterator>

namespace tessera {

OpCases all_cases() {
  OpCases all;
  for (const auto family :
       {elementwise_cases, activation_cases, reduce_cases, shape_cases, matmul_cases, norm_cases,
        batch_norm_cases, conv_cases, take_cases, resample_cases, rotary_cases, softmax_cases, loss_cases,
        patch_cases, dropout_cases, attention_cases}) {
    OpCases cases = family();
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  }
  return all;
}

}  // namespace tessera
