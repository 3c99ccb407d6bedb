#include "models/architectures.h"

#include <algorithm>

#include "models/cait.h"
#include "models/dit.h"
#include "models/efficientnet.h"
#include "models/lvvit.h"
#include "models/pit.h"
#include "models/resnet.h"
#include "models/rmt.h"
#include "models/sdt.h"
#include "models/segment.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"

namespace tessera {

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all{
      resnet_architecture(),  efficientnet_architecture(), vit_architecture(), pit_architecture(),
      swin_architecture(),    cait_architecture(),         t2t_architecture(), lvvit_architecture(),
      segment_architecture(), rmt_architecture(),          sdt_architecture(), dit_architecture()};
  return all;
}

const Architecture* find_architecture(const std::string& name) {
  const std::vector<Architecture>& all = architectures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace tessera
