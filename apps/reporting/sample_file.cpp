#include "apps/reporting/sample_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/reporting/sample_grid.h"
#include "data/formats/numpy.h"
#include "engine/core/error.h"
#include "engine/core/frozen_weights.h"
#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "models/diffusion.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t noise_tag = 1;
constexpr uint64_t longest_head = 1 << 20;  // bytes of a partial file's first line

std::string checksum_of(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes.data(), bytes.size());
  return sum.text();
}

std::string checksum_of_file(const fs::path& path) {
  const InputFile file(path);
  Checksum sum;
  std::string piece(size_t{1} << 20, '\0');
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    const size_t count = std::min<uint64_t>(piece.size(), file.size() - at);
    file.read(at, piece.data(), count);
    sum.add(piece.data(), count);
  }
  return sum.text();
}

// What every sample depends on, but for its number.
Json identity_of(const Checkpoint& checkpoint, const SampleSet& set, const SampleOptions& how,
                 Device device) {
  return {{"checkpoint", checksum_of_file(checkpoint.path)},
          {"classes", set.classes},
          {"seed", set.seed},
          {"sampler", how.sampler == DiffusionSampler::ddpm ? "ddpm" : "ddim"},
          {"steps", how.steps},
          {"guidance", how.guidance},
          {"device", std::string(name(device))},
          {"batch", device == Device::cpu ? 0 : set.batch}};  // a GPU's products may depend on it
}

// The file of what is drawn so far: a line that says of what, then each sample with its checksum. What a
// break left half written has none, and is drawn again.
class PartialFile {
 public:
  PartialFile(fs::path path, const Json& identity, size_t sample_bytes)
      : path_(std::move(path)), head_(identity.dump() + "\n"), sample_bytes_(sample_bytes) {
    if (fs::exists(path_)) take_up();
    if (samples_.empty()) begin();
    out_.open(path_, std::ios::binary | std::ios::app);
    check(out_.good(), path_.string(), ": cannot be written");
  }

  int64_t count() const { return static_cast<int64_t>(samples_.size() / sample_bytes_); }
  const std::string& samples() const { return samples_; }

  void add(const std::string& sample) {
    samples_ += sample;
    out_ << sample << checksum_of(sample);
  }
  void flush() {
    out_.flush();
    check(out_.good(), path_.string(), ": cannot be written; is the disk full?");
  }
  void remove() {
    out_.close();
    fs::remove(path_);
  }

 private:
  void begin() const { write_file_atomically(path_, head_); }

  void take_up() {
    const InputFile file(path_);
    std::string head(std::min<uint64_t>(file.size(), longest_head), '\0');
    file.read(0, head.data(), head.size());
    head.resize(std::min(head.size(), head.find('\n') + 1));
    check(head == head_, path_.string(),
          ": is of samples that another checkpoint, seed, list of classes, sampler, ",
          "number of steps or guidance draws; remove it, or give another --out");
    std::string sample(sample_bytes_, '\0'), sum(Checksum::digits, '\0');
    uint64_t at = head_.size();
    for (; at + sample_bytes_ + Checksum::digits <= file.size(); at += sample_bytes_ + Checksum::digits) {
      file.read(at, sample.data(), sample_bytes_);
      file.read(at + sample_bytes_, sum.data(), sum.size());
      if (checksum_of(sample) != sum) break;
      samples_ += sample;
    }
    fs::resize_file(path_, at);
  }

  fs::path path_;
  std::string head_;
  size_t sample_bytes_;
  std::string samples_;
  std::ofstream out_;
};

int64_t class_of(const SampleSet& set, int64_t i, int64_t classes) {
  if (!set.classes.empty()) return set.classes[static_cast<size_t>(i) % set.classes.size()];
  return Random(set.seed).split(static_cast<uint64_t>(i)).below(classes);
}

// A drawn image [C, H, W] as the file has it: bytes of pixels, or floats before the latents' scale.
std::string stored(const float* drawn, const Shape& shape, const DataFacts& facts) {
  if (facts.latent_scale == 0) {
    const Image image = drawn_image(drawn, static_cast<int>(shape[1]), facts.normalisation);
    return {image.pixels.begin(), image.pixels.end()};
  }
  std::vector<float> numbers(drawn, drawn + shape.elements());
  for (float& number : numbers) number = static_cast<float>(number / facts.latent_scale);
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

void draw_batch(const Checkpoint& checkpoint, const SampleSet& set, SampleOptions how, Device device,
                PartialFile& file) {
  const int64_t first = file.count(), count = std::min(set.batch, set.count - first);
  std::vector<int64_t> labels;
  how.seeds.clear();
  for (int64_t i = first; i < first + count; ++i) {
    labels.push_back(class_of(set, i, checkpoint.model.num_classes()));
    how.seeds.push_back(Random(set.seed).split(static_cast<uint64_t>(i)).split(noise_tag).bits64());
  }
  Pass pass;
  const Tensor drawn =
      checkpoint.model.sample(Tensor::from(labels, {count}).to(device), how, pass).to(Device::cpu);
  const Shape shape{drawn.dim(1), drawn.dim(2), drawn.dim(3)};
  for (int64_t i = 0; i < count; ++i)
    file.add(stored(drawn.data<float>() + i * shape.elements(), shape, checkpoint.data));
  file.flush();
}

}  // namespace

void write_samples(const Checkpoint& checkpoint, const SampleSet& set, const SampleOptions& how,
                   Device device, const fs::path& path, const std::function<void(int64_t)>& on_progress) {
  expect_drawing_model(checkpoint, "sample");
  const int64_t side = checkpoint.data.image_size, channels = checkpoint.model.in_channels();
  const bool latents = checkpoint.data.latent_scale > 0;
  const auto numbers = static_cast<size_t>(channels * side * side);
  PartialFile file(path.string() + ".partial", identity_of(checkpoint, set, how, device),
                   latents ? numbers * sizeof(float) : numbers);
  const FrozenWeights frozen(checkpoint.model.parameters.state());
  while (file.count() < set.count) {
    draw_batch(checkpoint, set, how, device, file);
    if (on_progress) on_progress(file.count());
  }
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set.count; ++i) labels.push_back(class_of(set, i, checkpoint.model.num_classes()));
  const size_t each = file.samples().size() / static_cast<size_t>(file.count());
  const std::string_view samples =
      std::string_view(file.samples()).substr(0, each * static_cast<size_t>(set.count));
  const Shape shape =
      latents ? Shape{set.count, channels, side, side} : Shape{set.count, side, side, channels};
  const NumpyArray arrays[] = {
      {"arr_0", latents ? DType::f32 : DType::u8, shape, samples},
      {"arr_1", DType::i64, {set.count}, {reinterpret_cast<const char*>(labels.data()), labels.size() * 8}}};
  write_npz(path, arrays);
  file.remove();
}

}  // namespace tessera
