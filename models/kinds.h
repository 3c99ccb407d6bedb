#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// The keys of an object of a config that some of its kinds know and others refuse, by kind.
using KindKeys = std::map<std::string, std::vector<std::string>>;

/// Sets the object's "kind", and removes the keys that are of other kinds alone. Does nothing to the keys if
/// the kind stays, or if it is given by stage.
void set_kind(Json& object, const Json& kind, const KindKeys& keys);

/// The kinds of a model's object of that name ("tokenizer", "pool", "decay"); a null pointer for others.
const KindKeys* kinds_of(const std::string& object);

/// A model's config with `changes`, a JSON merge patch (RFC 7396: null removes a key). Where a change names
/// another "kind", the keys of the former kind go.
Json changed(Json config, const Json& changes);

}  // namespace tessera
