#pragma once

// The page of all gradients. Every op that can be recorded is listed here once, with the formulas of its
// output and of its input gradients (dx is dL/dx; sums run over the broadcast or repeated axes). tessera
// gradcheck walks this list, the inspector prints it, and the tests demand an OpCase for each entry.

#include "engine/autograd/op.h"
#include "engine/ops/activation_table.h"

namespace tessera {

inline constexpr Op catalog[] = {
    // elementwise.h: broadcasting; sum_to(g, shape) undoes it
    {"add", "y = a + b", "da = dy; db = dy"},
    {"subtract", "y = a - b", "da = dy; db = -dy"},
    {"multiply", "y = a * b", "da = dy * b; db = dy * a"},
    {"divide", "y = a / b", "da = dy / b; db = -dy * y / b"},
    {"scale", "y = c * x", "dx = c * dy"},
    {"add_scalar", "y = x + c", "dx = dy"},
    {"cast", "y = x, rounded to another type", "dx = dy, rounded to x's"},
    {"exp", "y = exp(x)", "dx = dy * y"},
    {"log", "y = log(x)", "dx = dy / x"},
    {"sqrt", "y = sqrt(x)", "dx = dy / (2 y)"},
    {"square", "y = x^2", "dx = 2 x * dy"},
    {"absolute", "y = |x|", "dx = sign(x) * dy"},
// activations.h, from activation_table.h
#define TESSERA_ROW(name, Struct, forward, backward) {#name, forward, backward},
    TESSERA_ACTIVATIONS(TESSERA_ROW)
#undef TESSERA_ROW
    // reduce.h
    {"sum", "y = sum of x over the axes", "dx = dy, stretched over the axes"},
    {"mean", "y = sum of x over the axes / count", "dx = dy / count, stretched over the axes"},
    {"max", "y = the largest of x along an axis", "dx = dy at the first of the largest, 0 elsewhere"},
    // shape.h
    {"broadcast_to", "y = x, stretched to a shape", "dx = sum of dy over the stretched axes"},
    {"permute", "y = x with its axes in another order", "dx = dy with the order undone"},
    {"concat", "y = the inputs one after another along an axis", "dx_i = its slice of dy"},
    {"slice", "y = x[first : first + count] along an axis", "dx = dy in place, 0 elsewhere"},
    {"gather", "y_i = x[index_i] along axis 0", "dx[r] = sum of dy_i over index_i = r"},
    // take.h, resample.h
    {"take", "y_i = x[index_i] along an axis", "dx[r] = sum of dy_i over index_i = r"},
    {"resample", "y_ij = sum over u, v of a_iu b_jv x_uv, a and b the taps of rows and columns",
     "dx_uv = sum over i, j of a_iu b_jv dy_ij"},
    // rotary.h
    {"rotary", "y = each pair of channels of x, rotated by its angle", "dx = dy, rotated back"},
    // matmul.h
    {"matmul", "y = a b, batched over leading axes, each transposed first if so asked",
     "da = dy b^T; db = a^T dy, each transposed back"},
    {"linear", "y = f(x W^T + b), f the identity or an activation",
     "dz = dy f'(z); dx = dz W; dW = dz^T x; db = sum of dz over the rows"},
    // norm.h
    {"layer_norm", "y = h * weight + bias, h = (x - mean) / sqrt(var + eps)",
     "g = dy * weight; dx = (g - mean(g) - h mean(g h)) / sqrt(var + eps); dweight = sum dy h; dbias = sum "
     "dy"},
    // batch_norm.h
    {"batch_norm",
     "y = f(z), z = h * weight + bias + residual, if any, h = (x - mean) / sqrt(var + eps), mean and var of "
     "each channel, f the identity or an activation",
     "dz = dy f'(z); dx = weight (dz - mean(dz) - h mean(dz h)) / sqrt(var + eps), without the means where "
     "mean and var are the running ones; dweight = sum dz h; dbias = sum dz; dresidual = dz"},
    // conv.h
    {"conv2d", "y[i, j, o] = bias[o] + sum of weight[o, c, u, v] x[i s + u - p, j s + v - p, c]",
     "dx = the flipped weights over dy; dweight = dy^T (windows of x); dbias = sum dy"},
    {"depthwise_conv2d", "y[i, j, o] = bias[o] + sum of weight[o, u, v] x[i s + u - p, j s + v - p, o / m]",
     "dx = the flipped weights over dy; dweight = sum of dy * x over the windows; dbias = sum dy"},
    {"unfold", "y = the windows of x, one a row, each flattened as (c, y, x)",
     "dx = sum of dy at the pixels that the windows read"},
    // softmax.h
    {"softmax", "y_j = exp(x_j) / sum_k exp(x_k)", "dx = y (dy - sum_k dy_k y_k)"},
    {"log_softmax", "y_j = x_j - log sum_k exp(x_k)", "dx = dy - exp(y) sum_k dy_k"},
    // loss.h
    {"cross_entropy", "y = mean over rows of -sum_k t_k log_softmax(x)_k",
     "dx = dy (softmax(x) sum_k t_k - t) / rows"},
    // patches.h
    {"patches", "y = the image cut into P x P patches, each flattened as (c, p1, p2)",
     "dx = dy put back in its place"},
    {"shifted_copies", "y = [x, x moved by each direction], zero outside",
     "dx = sum of the copies moved back"},
    {"shifted_patches", "y = patches([x, x moved by each direction]), the copies never made",
     "dx = sum over the copies of their patches put back in place"},
    // dropout.h
    {"dropout", "y = x m / (1 - p), m = 1 with probability 1 - p, a draw an element", "dx = dy m / (1 - p)"},
    {"drop_path", "y = x + f m / (1 - p), m = 1 with probability 1 - p, a draw an image",
     "dx = dy; df = dy m / (1 - p)"},
    // attention.h
    {"attention", "s = mask(decay + bias + prior * scale * q k^T); P = softmax(s); y = P v",
     "dv = P^T dy; ds = P (dy v^T - rowsum(dy y)); back through the terms; dq = ds k, dk = ds^T q"},
    {"content_decay", "y_ij = -|alpha d_ij (g_i + g_j) / 2|, g the gates, d the distance (or 1)",
     "dg_i = sum_j of -sign(...) alpha d_ij / 2 (dy_ij + dy_ji)"},
    {"mask_diagonal", "y_ij = x_ij, -inf (or a given value) where i = j", "dx = dy, 0 where i = j"},
};

consteval OpName::OpName(const char* name) : op_(nullptr) {
  bool listed = false;  // g++ 12's undefined behaviour sanitizer does not take op_ == nullptr for a constant
  for (const Op& op : catalog) {
    if (op.name != name) continue;
    op_ = &op;
    listed = true;
  }
  if (!listed) throw "this op is not in engine/ops/catalog.h";
}

}  // namespace tessera
