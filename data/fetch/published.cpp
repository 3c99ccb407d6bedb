#include "data/fetch/published.h"

#include <algorithm>

namespace tessera {

namespace {

PublishedSet cifar10() {
  return {.name = "cifar10",
          .files = {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", 170052171,
                     "c32a1d4ab5d03f1284b67883e8d87530", true}},
          .folder = "cifar-10-batches-bin",
          .markers = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                      "data_batch_5.bin", "test_batch.bin", "batches.meta.txt"},
          .train = 50000,
          .validation = 10000,
          .classes = 10,
          .leaks = 0,
          .side = 32,
          .sums = {{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
                   {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
                   {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
                   {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
                   {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
                   {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"}},
          .how_to_get = ""};
}

PublishedSet cifar100() {
  return {.name = "cifar100",
          .files = {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", 168513733,
                     "03b5dce01913d631647c71ecec9e9cb8", true}},
          .folder = "cifar-100-binary",
          .markers = {"train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt"},
          .train = 50000,
          .validation = 10000,
          .classes = 100,
          .leaks = 0,
          .side = 32,
          .sums = {{"train.bin", "6172c7755cfe09b2fe270c85cebc1b15"},
                   {"test.bin", "4499cfba6c016c1be1438163640a0898"}},
          .how_to_get = ""};
}

PublishedSet svhn() {
  return {.name = "svhn",
          .files = {{"http://ufldl.stanford.edu/housenumbers/train_32x32.mat", 182040794,
                     "e26dedcc434d2e4c54c9b2d4a06d8373", false},
                    {"http://ufldl.stanford.edu/housenumbers/test_32x32.mat", 64275384,
                     "eb5a983be6a315427106f1b164d9cef3", false}},
          .folder = "",
          .markers = {"train_32x32.mat", "test_32x32.mat"},
          .train = 73257,
          .validation = 26032,
          .classes = 10,
          .leaks = 0,
          .side = 32,
          .sums = {{"train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"},
                   {"test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"}},
          .how_to_get = ""};
}

PublishedSet tiny_imagenet() {
  return {.name = "tiny-imagenet",
          .files = {{"http://cs231n.stanford.edu/tiny-imagenet-200.zip", 248100043,
                     "90528d7ca1a48142e341f4ef8d21d0de", true}},
          .folder = "tiny-imagenet-200",
          .markers = {"wnids.txt", "words.txt", "train", "val/images", "val/val_annotations.txt"},
          .train = 100000,
          .validation = 10000,
          .classes = 200,
          .leaks = 7,
          .side = 64,
          .sums = {},
          .how_to_get = ""};
}

PublishedSet idx(const std::string& name, const std::string& base,
                 const std::array<PublishedFile, 4>& files) {
  PublishedSet set{.name = name,
                   .files = {},
                   .folder = "",
                   .markers = {},
                   .train = 60000,
                   .validation = 10000,
                   .classes = 10,
                   .leaks = 0,
                   .side = 28,
                   .sums = {},
                   .how_to_get = ""};
  for (PublishedFile file : files) {
    set.markers.push_back(file.url);
    set.sums.push_back({file.url, file.md5});
    file.url = base + file.url;
    set.files.push_back(file);
  }
  return set;
}

PublishedSet mnist() {
  return idx("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/",
             {{{"train-images-idx3-ubyte.gz", 9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873", false},
               {"train-labels-idx1-ubyte.gz", 28881, "d53e105ee54ea40749a09fcbcd1e9432", false},
               {"t10k-images-idx3-ubyte.gz", 1648877, "9fb629c4189551a2d022fa330f9573f3", false},
               {"t10k-labels-idx1-ubyte.gz", 4542, "ec29112dd5afa0611ce80d1b7f02629c", false}}});
}

PublishedSet fashion_mnist() {
  return idx("fashion-mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
             {{{"train-images-idx3-ubyte.gz", 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d", false},
               {"train-labels-idx1-ubyte.gz", 29515, "25c81989df183df01b3e8a0aad5dffbe", false},
               {"t10k-images-idx3-ubyte.gz", 4422102, "bef4ecab320f06d8554ea6380940ec79", false},
               {"t10k-labels-idx1-ubyte.gz", 5148, "bb300cfdad3c16e7a12a480ee83cd310", false}}});
}

PublishedSet ade20k() {
  return {
      .name = "ade20k",
      .files = {{"http://data.csail.mit.edu/places/ADEchallenge/ADEChallengeData2016.zip", 0,
                 "7328b3957e407ddae1d3cbf487f149ef", true}},
      .folder = "ADEChallengeData2016",
      .markers = {"images/training", "images/validation", "annotations/training", "annotations/validation"},
      .train = 20210,
      .validation = 2000,
      .classes = 150,
      .leaks = 0,
      .side = 0,
      .sums = {},
      .how_to_get = ""};
}

PublishedSet imagenet(const std::string& name, int64_t train, int64_t validation, int64_t classes) {
  return {.name = name,
          .files = {},
          .folder = "",
          .markers = {"train", "val"},
          .train = train,
          .validation = validation,
          .classes = classes,
          .leaks = 0,
          .side = 0,
          .sums = {},
          .how_to_get =
              "make an account at https://image-net.org, which asks for a research or teaching purpose; "
              "download ILSVRC2012_img_train.tar (MD5 1d675b47d978889d74fa0da5fadfb00e) and "
              "ILSVRC2012_img_val.tar (MD5 29b22e2961454d5413ddabcf34fc5622); unpack each class's "
              "archive of the first to train/WNID, the second to val, and put LOC_val_solution.csv "
              "beside them"};
}

}  // namespace

const PublishedSet* published(const std::string& name) {
  static const std::vector<PublishedSet> all{cifar10(),
                                             cifar100(),
                                             svhn(),
                                             tiny_imagenet(),
                                             mnist(),
                                             fashion_mnist(),
                                             ade20k(),
                                             imagenet("imagenet", 1281167, 50000, 1000),
                                             imagenet("imagenet-100", 0, 5000, 100)};
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& set) { return set.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace tessera
