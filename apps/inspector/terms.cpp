#include "apps/inspector/terms.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

namespace {

// The part of the config that has tokenizer and attention: a segmenter's are its backbone's.
Json& network_of(Json& config) { return config.contains("backbone") ? config["backbone"] : config; }

Json& attention_of(Json& config) { return network_of(config)["attention"]; }

// Whether the key has this value, in one stage at least.
bool has(const Json& options, const char* key, const Json& value) {
  const auto found = options.find(key);
  if (found == options.end()) return false;
  return *found == value || (found->is_array() && std::ranges::find(*found, value) != found->end());
}

bool is_given(const Json& options, const char* key) {
  return options.contains(key) && !options[key].is_null();
}

bool is_decay_net(Json& config) {
  return config.value("arch", "") == "rmt" || config.value("arch", "") == "sdt";
}

// The objects of the config that shift copies of the image or of a map.
std::vector<Json*> shifts_of(Json& config) {
  std::vector<Json*> found;
  for (const char* key : {"tokenizer", "pool"}) {
    Json& network = network_of(config);
    if (!is_given(network, key)) continue;
    Json& options = network[key];
    if (options.value("kind", "") == "shifted" || is_given(options, "directions")) found.push_back(&options);
  }
  return found;
}

// In LV-ViT the prior says which blocks have no class token, so there it stays, with every factor 1.
bool keeps_prior(Json& config) { return network_of(config).value("arch", "") == "lvvit"; }

struct Switch {
  Term term;
  bool (*is_there)(Json& config);
  void (*take_out)(Json& config);
};

const std::array switches{
    Switch{{"temperature", "learned temperature (LSA)"},
           [](Json& c) { return has(attention_of(c), "scale", "learned"); },
           [](Json& c) { attention_of(c)["scale"] = "fixed"; }},
    Switch{{"mask", "diagonal mask (LSA)"},
           [](Json& c) { return has(attention_of(c), "mask_diagonal", true); },
           [](Json& c) { attention_of(c)["mask_diagonal"] = false; }},
    Switch{{"prior", "spatial prior (SP-SA)"},
           [](Json& c) { return is_given(attention_of(c), "prior"); },
           [](Json& c) {
             if (!keeps_prior(c)) attention_of(c).erase("prior");
           }},
    Switch{{"bias", "relative position bias"},
           [](Json& c) { return has(attention_of(c), "relative_bias", true); },
           [](Json& c) { attention_of(c)["relative_bias"] = false; }},
    Switch{{"decay", "spatial decay"},
           [](Json& c) { return is_given(attention_of(c), "decay"); },
           [](Json& c) { attention_of(c).erase("decay"); }},
    Switch{{"gates", "gates of the decay"},
           [](Json& c) {
             return is_given(attention_of(c), "decay") && has(attention_of(c)["decay"], "kind", "content");
           },
           [](Json& c) {
             const Json alpha = attention_of(c)["decay"].value("alpha", Json(1.0));
             attention_of(c)["decay"] = {{"kind", "distance"}, {"alpha", alpha}};
           }},
    Switch{
        {"rope", "rotary positions"},
        [](Json& c) { return is_decay_net(c) && attention_of(c).value("rope", Json(true)) != Json(false); },
        [](Json& c) { attention_of(c)["rope"] = false; }},
    Switch{{"lepe", "convolution beside the attention"},
           [](Json& c) { return is_decay_net(c) && attention_of(c).value("lepe", Json(5)) != Json(0); },
           [](Json& c) { attention_of(c)["lepe"] = 0; }},
    Switch{{"shift", "shift of the copies (SPT)"},
           [](Json& c) {
             return std::ranges::any_of(shifts_of(c),
                                        [](const Json* o) { return o->value("ratio", 0.5) > 0; });
           },
           [](Json& c) {
             for (Json* options : shifts_of(c)) (*options)["ratio"] = 0.0;
           }},
};

// Makes every factor of a prior that stays 1: Omega = b2 + W2 relu(...) with W2 = 0 and b2 = 1.
void neutralise_prior(const Model& model) {
  for (const Parameter& p : model.parameters)
    if (matches(p.name, "*prior.fc2.weight") || matches(p.name, "*prior.fc2.bias"))
      p.value.copy_from(Tensor::full(p.value.shape(), p.name.ends_with("bias") ? 1 : 0, p.value.dtype()));
}

bool has_attention(Json& config) { return network_of(config).contains("attention"); }

}  // namespace

std::vector<Term> terms_of(const Json& config) {
  Json asked = config;
  std::vector<Term> terms;
  if (!has_attention(asked)) return terms;
  for (const Switch& each : switches)
    if (each.is_there(asked)) terms.push_back(each.term);
  return terms;
}

Model without_term(const Model& model, const std::string& term) {
  std::vector<std::string> names;
  for (const Term& each : terms_of(model.config)) names.push_back(each.name);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  check(!names.empty(), "without ", term, ": the model has no term that can be switched off");
  check(std::ranges::find(names, term) != names.end(), "without ", term, ": the model's terms are ", list,
        did_you_mean(term, names));
  Json config = model.config;
  const auto* const found =
      std::ranges::find_if(switches, [&](const Switch& each) { return each.term.name == term; });
  found->take_out(config);
  const Model result = build(config, {.dtype = model.parameters.begin()->value.dtype()});
  for (const Parameter& p : result.parameters) {
    const Tensor* own = model.parameters.find(p.name);
    check(own != nullptr, "without ", term, ": the model has no ", p.name);
    p.value.copy_from(*own);
  }
  if (term == "prior" && keeps_prior(config)) neutralise_prior(result);
  return result;
}

}  // namespace tessera
