#include "apps/reporting/run_record.h"

#include "apps/reporting/run_check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace tessera {

namespace {

struct Text {
  std::string name, good;
};
const std::vector<Text> texts{
    {"config.json", R"({"model":{"preset":"vit"},"data":{"name":"shapes"}})"},
    {"metrics.csv", "epoch,lr,train_loss,validation_loss,validation_top1,validation_top5\n1,0.1,2,2,0.5,1\n"},
    {"events.jsonl", "{\"event\":\"start\",\"precision\":\"f32\"}\n{\"event\":\"epoch\",\"epoch\":1}\n"}};

}  // namespace

}  // namespace tessera

// The first byte selects the file of the run folder that the other bytes replace; reports and `tessera
// doctor` read it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  for (const Text& text : texts) folder.put(text.name, text.good);
  const Text& text = texts[data[0] % texts.size()];
  folder.put(text.name, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  fuzz::may_refuse(folder.path(), [&] {
    const RunRecord run = read_run(folder.path());
    summary_of(run);
    precision_of(run);
  });
  for (const Diagnosis& diagnosis : check_run(folder.path())) to_json(diagnosis);
  return 0;
}
