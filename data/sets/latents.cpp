#include "data/sets/latents.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "data/formats/folder.h"
#include "engine/core/error.h"
#include "engine/core/per_thread.h"
#include "engine/core/random.h"
#include "engine/io/tensor_stream.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t most_classes = 100'000, most_side = 4096, most_numbers = int64_t{1} << 24;  // in a latent
constexpr double least_logvar = -30, largest_logvar = 20;
constexpr const char* extension = ".safetensors";

// One file of latents.
class LatentFile {
 public:
  explicit LatentFile(const fs::path& path) : tensors_(path), drawn_(!tensors_.has("latents")) {
    check(!drawn_ || tensors_.has("means"), tensors_.where(),
          ": has neither a tensor 'latents' nor 'means' and 'logvars'");
    check(!drawn_ || tensors_.has("logvars"), tensors_.where(),
          ": has no tensor 'logvars' beside 'means'; wanted both, or 'latents' alone");
    const char* name = drawn_ ? "means" : "latents";
    shape_ = shape_of(name);
    check(!drawn_ || shape_of("logvars") == shape_, tensors_.where(), ": 'logvars' is ",
          drawn_ ? tensors_.shape("logvars") : Shape{}, ", 'means' ", shape_);
    read_labels();
  }

  int64_t size() const { return shape_[0]; }
  Shape image_shape() const { return {shape_[1], shape_[2], shape_[3]}; }
  const std::string& where() const { return tensors_.where(); }
  const std::vector<int32_t>& labels() const { return labels_; }

  // Latent i, drawn where the file holds its distribution.
  void read(int64_t i, Random random, float* to) const {
    const int64_t numbers = shape_.elements() / shape_[0];
    tensors_.row(drawn_ ? "means" : "latents", i, to);
    if (drawn_) {
      static const PerThread<std::vector<float>> of_all;
      std::vector<float>& logvars = of_all.of_this_thread();
      logvars.resize(static_cast<size_t>(numbers));
      tensors_.row("logvars", i, logvars.data());
      for (int64_t at = 0; at < numbers; ++at) {
        const double logvar = logvars[static_cast<size_t>(at)];
        // A NaN passes std::clamp, and is refused below.
        const double deviation = std::exp(std::clamp(logvar, least_logvar, largest_logvar) / 2);
        to[at] = static_cast<float>(to[at] + deviation * random.normal());
      }
    }
    for (int64_t at = 0; at < numbers; ++at)
      check(std::isfinite(to[at]), where(), ": latent ", i, " holds ", to[at], " at place ", at,
            "; its numbers must be finite");
  }

 private:
  Shape shape_of(const char* name) const {
    const Shape& shape = tensors_.shape(name);
    check(is_float(tensors_.dtype(name)), where(), ": '", name, "' is ", tensors_.dtype(name),
          "; F32, F16 or BF16 is wanted");
    check(shape.rank() == 4 && shape.elements() > 0, where(), ": '", name, "' is ", shape,
          "; [N, C, H, W] is wanted, with at least one latent");
    check(shape[2] == shape[3] && shape[2] <= most_side && shape.elements() / shape[0] <= most_numbers,
          where(), ": '", name, "' holds latents of ", shape[1], " x ", shape[2], " x ", shape[3],
          "; they are square, with at most ", most_side, " numbers a side and ", most_numbers, " in all");
    return shape;
  }

  void read_labels() {
    const Shape& shape = tensors_.shape("labels");
    const DType dtype = tensors_.dtype("labels");
    check(!is_float(dtype) && shape == Shape{size()}, where(), ": 'labels' is ", dtype, " ", shape,
          "; integers [", size(), "] are wanted, one a latent");
    for (const int64_t label : tensors_.whole("labels").integers()) {
      check(label >= 0 && label < most_classes, where(), ": label ", label, " of latent ", labels_.size(),
            "; classes are 0 to ", most_classes - 1);
      labels_.push_back(static_cast<int32_t>(label));
    }
  }

  TensorStream tensors_;
  bool drawn_;  // from means and logvars
  Shape shape_;
  std::vector<int32_t> labels_;
};

// Several files, their latents numbered one file after another.
class LatentFiles {
 public:
  explicit LatentFiles(const std::vector<fs::path>& paths) {
    for (const fs::path& path : paths) {
      files_.push_back(std::make_unique<LatentFile>(path));
      const LatentFile &file = *files_.back(), &first = *files_.front();
      check(file.image_shape() == first.image_shape(), file.where(), ": holds latents of ",
            file.image_shape(), ", ", first.where(), " of ", first.image_shape());
      firsts_.push_back(std::ssize(labels_));
      labels_.insert(labels_.end(), file.labels().begin(), file.labels().end());
    }
  }

  int64_t size() const { return std::ssize(labels_); }
  int32_t label(int64_t i) const { return labels_[static_cast<size_t>(i)]; }
  std::string source(int64_t i) const {
    const size_t f = file_of(i);
    return files_[f]->where() + ": latent " + std::to_string(i - firsts_[f]);
  }
  void read(int64_t i, const Random& random, float* to) const {
    const size_t f = file_of(i);
    files_[f]->read(i - firsts_[f], random, to);
  }
  Shape shape() const { return files_.front()->image_shape(); }
  const std::string& where() const { return files_.front()->where(); }
  int64_t classes() const { return int64_t{*std::max_element(labels_.begin(), labels_.end())} + 1; }

 private:
  size_t file_of(int64_t i) const {
    return static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), i) - firsts_.begin() - 1);
  }

  std::vector<std::unique_ptr<LatentFile>> files_;
  std::vector<int64_t> firsts_;  // of each file, the number of its first latent
  std::vector<int32_t> labels_;
};

using Files = std::shared_ptr<const LatentFiles>;

// The latents with these numbers, times the scale.
class LatentSplit : public Split {
 public:
  LatentSplit(Files files, std::vector<int64_t> numbers, double scale)
      : files_(std::move(files)), numbers_(std::move(numbers)), scale_(static_cast<float>(scale)) {}

  int64_t size() const override { return std::ssize(numbers_); }
  int64_t label(int64_t i) const override { return files_->label(number(i)); }
  std::string source(int64_t i) const override { return files_->source(number(i)); }
  void image(int64_t i, Image&) const override {
    fail(source(i), ": is an autoencoder's latent, which has no pixels to show");
  }
  bool has_latents() const override { return true; }
  void latent(int64_t i, Random random, float* to) const override {
    files_->read(number(i), random, to);
    for (int64_t at = 0, count = files_->shape().elements(); at < count; ++at) to[at] *= scale_;
  }

 private:
  int64_t number(int64_t i) const { return numbers_[static_cast<size_t>(i)]; }

  Files files_;
  std::vector<int64_t> numbers_;
  float scale_;
};

// NAME.safetensors of the folder, or the files of its folder NAME; none if there is neither.
std::vector<fs::path> files_of(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> files;
  if (is_file(folder / (name + extension))) return {folder / (name + extension)};
  if (!is_folder(folder / name)) return files;
  for (const fs::path& path : list_folder(folder / name))
    if (path.extension() == extension) files.push_back(path);
  check(!files.empty(), "latents: ", (folder / name).string(), " holds no file *", extension);
  return files;
}

std::vector<fs::path> validation_files(const fs::path& folder, std::vector<std::string>& notes) {
  for (const char* name : {"val", "valid", "validation", "test"})
    if (std::vector<fs::path> files = files_of(folder, name); !files.empty()) {
      notes.push_back("validation latents from " + files.front().string() +
                      (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : ""));
      return files;
    }
  return {};
}

std::shared_ptr<const Split> all_of(const Files& files, double scale) {
  std::vector<int64_t> numbers(static_cast<size_t>(files->size()));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return std::make_shared<LatentSplit>(files, std::move(numbers), scale);
}

// Cuts the latents in two: all but those held out, and these, at least one.
void hold_out(const Files& files, const DatasetOptions& options, Dataset& dataset) {
  const double fraction = options.validation_fraction;
  check(fraction > 0 && fraction < 1, "latents: a validation fraction of ", fraction,
        "; it lies between 0 and 1");
  const int64_t size = files->size();
  check(size >= 2, files->where(), ": has one latent; two are needed to hold one out for validation");
  const int64_t take = std::clamp(std::llround(fraction * static_cast<double>(size)), 1LL, size - 1LL);
  std::vector<int64_t> kept, held;
  Random random(options.seed);
  for (int64_t i = 0; i < size; ++i)  // the probability that makes `take` in all
    (random.below(size - i) < take - std::ssize(held) ? held : kept).push_back(i);
  dataset.train = std::make_shared<LatentSplit>(files, std::move(kept), options.latent_scale);
  dataset.validation = std::make_shared<LatentSplit>(files, std::move(held), options.latent_scale);
  dataset.notes.push_back(std::to_string(take) + " latents held out for validation, with seed " +
                          std::to_string(options.seed));
}

std::vector<std::string> class_names(const fs::path& file, int64_t classes) {
  std::vector<std::string> names;
  if (is_file(file)) names = read_lines(file);
  check(names.empty() || std::ssize(names) >= classes, file.string(), ": names ", names.size(),
        " classes, the largest label is ", classes - 1);
  for (int64_t k = std::ssize(names); k < classes; ++k) names.push_back(std::to_string(k));
  return names;
}

}  // namespace

Dataset open_latents(const fs::path& path, const DatasetOptions& options) {
  const bool one_file = is_file(path);
  check(one_file || is_folder(path), "latents: ", path.string(), " is neither a folder nor a file");
  const std::vector<fs::path> files = one_file ? std::vector{path} : files_of(path, "train");
  check(!files.empty(), "latents: ", path.string(), " holds neither train", extension, " nor a folder train");
  Dataset dataset;
  dataset.name = "latents";
  dataset.latent_scale = options.latent_scale;
  const auto train = std::make_shared<const LatentFiles>(files);
  dataset.image_shape = train->shape();
  check(options.image_size == 0 || options.image_size == train->shape()[1], train->where(),
        ": holds latents of ", train->shape()[1], " x ", train->shape()[2], ", data.image_size is ",
        options.image_size);
  int64_t classes = std::max<int64_t>(2, train->classes());
  const std::vector<fs::path> held =
      one_file ? std::vector<fs::path>() : validation_files(path, dataset.notes);
  if (held.empty()) {
    hold_out(train, options, dataset);
  } else {
    const auto validation = std::make_shared<const LatentFiles>(held);
    check(validation->shape() == train->shape(), validation->where(), ": holds latents of ",
          validation->shape(), ", ", train->where(), " of ", train->shape());
    classes = std::max(classes, validation->classes());
    dataset.train = all_of(train, options.latent_scale);
    dataset.validation = all_of(validation, options.latent_scale);
  }
  dataset.class_names = class_names(one_file ? fs::path() : path / "classes.txt", classes);
  return dataset;
}

bool looks_like_latents(const fs::path& folder) {
  try {
    return !files_of(folder, "train").empty();
  } catch (const Error&) {  // a folder `train` of other files
    return false;
  }
}

DatasetEntry latents_entry() {
  return {.name = "latents",
          .open = open_latents,
          .sizes = {.reason = "the latents are taken as they are stored; leave it out"},
          .takes_validation_fraction = true,
          .has_latents = true,
          .side = 32,  // of ImageNet at 256 pixels
          .classes = 1000};
}

}  // namespace tessera
