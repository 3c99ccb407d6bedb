#pragma once

// A recorded pass as files and text that other programs read.

#include <filesystem>
#include <string>

#include "engine/autograd/pass_record.h"
#include "engine/io/json.h"

namespace tessera {

// A row a value, in the order of the pass: name, kind ("leaf", "constant", "computed"), op, shape, dtype, and
// whether a gradient flowed to it; "readers_left_out" where steps that read it are not in this part.
Json rows_of_values(const PassRecord& record);

// The steps of the pass in order, with formulas, modules, the names that they read (null for an input that
// was left out) and in which shapes, the attributes, the name that they make; and the rows of the values.
Json json_of_pass(const PassRecord& record);

// Writes values.safetensors, gradients.safetensors and pass.json into the folder, which is made. Aliases are
// in pass.json alone, and so are the members of the object `facts`.
void export_pass(const PassRecord& record, const std::filesystem::path& folder, const Json& facts);

// One head of x, a value of the pass or its gradient: [B, N, d] of [B, H, N, d]. Fails for a value without
// heads, as all outside attention are, and for a head that it does not have.
Tensor head_of(const Tensor& x, int64_t head, const PassRecord& record, const PassRecord::Value& value);

// A tensor as CSV: a line a row (the last axis), numbers with as many digits as their type needs to be read
// back exactly. A head line names the columns "i0,i1,...,0,1,...": the indices of the row, then its values.
std::string tensor_csv(const Tensor& x);
// A number as JSON, which has no infinities and no NaN: these become "inf", "-inf" and "nan".
Json number_json(double value);
// {"shape": [...], "dtype": "f32", "values": [...]}; numbers that are not finite are strings.
Json tensor_json(const Tensor& x);

}  // namespace tessera
