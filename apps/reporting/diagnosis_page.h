#pragma once

#include <string>
#include <vector>

#include "apps/reporting/diagnosis.h"
#include "apps/reporting/overlay.h"
#include "data/formats/image.h"

namespace tessera {

// A run whose attention was measured.
struct DiagnosedRun {
  std::string name;
  std::string measured_on;  // "256 images of the validation split of shapes"
  std::vector<LayerDiagnosis> layers;
  std::vector<PriorDiagnosis> priors;
};

// Where the runs that were measured on one picture look on it.
struct ComparedPicture {
  std::string name;
  Image image;
  std::vector<NamedMap>
      maps;  // each of these runs' name and its attention: last layer, class token, mean over heads
};

// One page of figures: temperature and divergence by depth with all runs in each picture, the attention of
// all runs side by side, priors, and the decay around the query. Parts without anything to show are left out.
std::string diagnosis_page(const std::vector<DiagnosedRun>& runs,
                           const std::vector<ComparedPicture>& pictures);

}  // namespace tessera
