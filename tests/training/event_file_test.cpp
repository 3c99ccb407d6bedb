#include "apps/training/event_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"
#include "tests/error_of.h"
#include "tests/io/full_disk.h"

using namespace tessera;

namespace {

std::string hex(const std::string& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[c & 15];
  }
  return out;
}

}  // namespace

TEST_CASE("CRC-32C as RFC 3720 has it") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

// The bytes are those of TensorBoard's own writer.
TEST_CASE("events and their frames byte by byte") {
  const std::pair<std::string, double> loss[] = {{"loss", 1.5}};
  const std::string event = scalars_event(1700000000.5, 12, loss);
  CHECK(hex(event) == "0900002040fc54d941100c2a0d0a0b0a046c6f7373150000c03f");
  CHECK(hex(tf_record(event)) ==
        "1a00000000000000129bd82d0900002040fc54d941100c2a0d0a0b0a046c6f7373150000c03f0790eca0");
  CHECK(hex(tf_record(version_event(1700000000.5))) ==
        "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  CHECK(hex(start_event(1, 300)) == "09000000000000f03f10ac023a020801");
  CHECK(hex(image_event(1, 3, "p", 2, 3, "PNG")) ==
        "09000000000000f03f10032a120a100a0170220b0802100318032203504e47");
}

TEST_CASE("settings of every type are written by their paths") {
  const std::string event = settings_event(1, {{"on", true},
                                               {"off", false},
                                               {"sub", {{"lr", 0.5}, {"batch", 2}}},
                                               {"name", "vit"},
                                               {"none", nullptr},
                                               {"list", {1, "a"}}});
  const auto has = [&](const std::string& key, const std::string& value) {  // an entry of the map
    const auto text = [](char field, const std::string& bytes) {
      return std::string{field, static_cast<char>(bytes.size())} + bytes;
    };
    return event.find(text(10, key) + text(18, value)) != std::string::npos;
  };
  CHECK(has("on", std::string("\x20\x01", 2)));
  CHECK(has("off", std::string("\x20\x00", 2)));
  CHECK(has("sub.lr", std::string("\x11\0\0\0\0\0\0\xe0\x3f", 9)));
  CHECK(has("sub.batch", std::string("\x11\0\0\0\0\0\0\0\x40", 9)));
  CHECK(has("name", "\x1a\x03vit"));
  CHECK(has("none", "\x1a\x04null"));
  CHECK(has("list", "\x1a\x07[1,\"a\"]"));
  CHECK_FALSE(has("list", "\x1a\x03vit"));
}

TEST_CASE("an event file grows by whole records, each with its checksums") {
  const TemporaryFolder folder;
  std::filesystem::path path;
  {
    EventFile file(folder.path(), 7);
    const std::pair<std::string, double> loss[] = {{"loss", 1.5}};
    const Histogram weights{.tag = "w", .highest = 1, .count = 2, .limits = {0.5, 1}, .counts = {1, 1}};
    file.scalars(8, loss);
    file.image(8, "p", 2, 3, "PNG");
    file.histograms(8, {&weights, 1});
    file.graph("nodes");
    file.settings({{"lr", 0.5}});
    path = file.path();
  }
  const std::string bytes = bytes_of(path);
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    records.push_back(bytes.substr(at + 12, length));
    REQUIRE(bytes.substr(at, 16 + length) == tf_record(records.back()));
    at += 16 + length;
  }
  REQUIRE(records.size() == 7);
  CHECK(records[0].ends_with("brain.Event:2"));
  CHECK(hex(records[1]).ends_with("10083a020801"));  // what comes is after step 7
  CHECK(records[2].find("loss") != std::string::npos);
  CHECK(records[3].find("PNG") != std::string::npos);
  CHECK(hex(records[4]).find("3210000000000000e03f000000000000f03f") != std::string::npos);  // the limits
  CHECK(records[5].ends_with("\"\x05nodes"));
  CHECK(records[6].find("hparams") != std::string::npos);
}

TEST_CASE("an event file on a full disk is named with the reason") {
  const TemporaryFolder folder;
  std::string said;
  {
    EventFile file(folder.path(), 0);
    const FullDisk full(std::filesystem::file_size(file.path()) + 5);
    file.graph(std::string(1000, 'n'));
    said = error_of([&] { file.flush(); });
    CHECK(said == file.path().string() + ": cannot be written: File too large");
  }
}

TEST_CASE("an event file that cannot be made is named") {
  CHECK_THROWS_WITH_AS(EventFile("/nowhere/at/all", 0),
                       doctest::Contains("/nowhere/at/all/events.out.tfevents."), Error);
}

TEST_CASE("a run's event files are read by TensorBoard") {
  if (std::system("python3 -c 'import tensorboard' >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: Python has no tensorboard");
    return;
  }
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  const std::string common =
      "train --dataset shapes --image-size 16 --epochs 2 --batch 16 --set data.train_images=48"
      " --set data.validation_images=10 --set model.dim=16 --set model.depth=1 --tensorboard"
      " --set schedule.warmup_epochs=0 --out ";
  REQUIRE(tessera_program(common + run + " --stop-after 4").code == 0);
  REQUIRE(tessera_program("train --resume " + run).code == 0);
  put(folder / "read.py", R"(
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], {"histograms": 0})
events.Reload()
scalars = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
pictures = [[e.step, e.width, e.height] for e in events.Images("train/pictures")]
weights = [[e.step, e.histogram_value.num, e.histogram_value.sum] for e in events.Histograms("weights/head.weight")]
from tensorboard.plugins.hparams import plugin_data_pb2
data = events.SummaryMetadata("_hparams_/session_start_info").plugin_data
settings = plugin_data_pb2.HParamsPluginData.FromString(data.content).session_start_info.hparams
graph = events.Graph()
names = {node.name for node in graph.node}
json.dump({"scalars": scalars, "pictures": pictures, "weights": weights, "plugin": data.plugin_name,
           "lr": settings["optimizer.lr"].number_value, "arch": settings["model.arch"].string_value,
           "nodes": [[node.name, node.op, [d.size for d in node.attr["_output_shapes"].list.shape[0].dim]]
                     for node in graph.node],
           "unknown": [i for node in graph.node for i in node.input if i not in names],
           "twice": len(graph.node) - len(names)}, open(sys.argv[2], "w"))
)");
  const std::string result = (folder / "read.json").string();
  REQUIRE(std::system(("python3 " + (folder / "read.py").string() + " " + run + " " + result + " 2>" +
                       (folder / "err").string())
                          .c_str()) == 0);
  const auto read = nlohmann::json::parse(bytes_of(result));
  const auto& scalars = read["scalars"];
  REQUIRE(scalars["train/loss"].size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(scalars["train/loss"][i][0] == i + 1);
  const std::string metrics = bytes_of(folder / "run" / "metrics.csv");
  REQUIRE(scalars["validation/top1"].size() == 2);
  CHECK(scalars["validation/top1"][1][0] == 6);
  CHECK(scalars["epoch/train_loss"].size() == 2);
  CHECK(metrics.find("\n2,6,") != std::string::npos);
  CHECK(read["pictures"][0] == nlohmann::json({1, 64, 64}));
  REQUIRE(read["weights"].size() == 2);  // one an epoch: [classes, 16]
  const TensorFile weights = read_safetensors(folder / "run" / "last.safetensors");
  const std::vector<double> head = weights.at("head.weight").values();
  CHECK(read["weights"][1][0] == 6);
  CHECK(read["weights"][1][1] == static_cast<double>(head.size()));
  CHECK(read["weights"][1][2].get<double>() ==
        doctest::Approx(std::accumulate(head.begin(), head.end(), 0.0)).epsilon(1e-12));
  CHECK(read["plugin"] == "hparams");
  CHECK(read["arch"] == "vit");
  CHECK(read["lr"].get<double>() > 0);
  const auto has_node = [&](const char* name, const char* op, const nlohmann::json& shape) {
    return std::ranges::count(read["nodes"], nlohmann::json({name, op, shape})) == 1;
  };
  CHECK(has_node("head/weight", "Parameter", {static_cast<int64_t>(head.size()) / 16, 16}));
  CHECK(has_node("head/out", "linear", {2, static_cast<int64_t>(head.size()) / 16}));
  CHECK(read["unknown"].empty());
  CHECK(read["twice"] == 0);
}

TEST_CASE("without --tensorboard there is no event file") {
  const TemporaryFolder folder;
  REQUIRE(tessera_program("train --dataset shapes --image-size 16 --epochs 1 --batch 16 --set "
                          "data.train_images=16 --set data.validation_images=10 --set model.dim=16 --set "
                          "model.depth=1 --set schedule.warmup_epochs=0 --out " +
                          (folder / "run").string())
              .code == 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    CHECK(entry.path().string().find("tfevents") == std::string::npos);
}
