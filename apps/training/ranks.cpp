#include "apps/training/ranks.h"

#include <algorithm>

#include "engine/core/error.h"

namespace tessera {

namespace {

class OneRank : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int64_t send(int, const void*, size_t, Channel) override {
    fail("ranks: there is no other one to send to");
  }
  int64_t receive(int, void*, size_t, Channel) override {
    fail("ranks: there is no other one to receive from");
  }
  int64_t done() override { return 0; }

 protected:
  int64_t begun() const override { return 0; }
};

// Sends every rank the items share(own rank), and receives theirs.
template <class ShareOf> void trade(Ranks& ranks, void* bytes, size_t item_bytes, const ShareOf& share) {
  const auto part = [&](int rank) {
    const Share its = share(rank);
    return std::pair(static_cast<std::byte*>(bytes) + static_cast<size_t>(its.first) * item_bytes,
                     static_cast<size_t>(its.count) * item_bytes);
  };
  const auto [own, own_bytes] = part(ranks.rank());
  for (int other = 0; other < ranks.size(); ++other) {
    if (other == ranks.rank()) continue;
    const auto [theirs, their_bytes] = part(other);
    if (their_bytes > 0) ranks.receive(other, theirs, their_bytes);
    if (own_bytes > 0) ranks.send(other, own, own_bytes);
  }
  ranks.wait();
}

}  // namespace

void Ranks::wait(int64_t number) {
  while (done() < number) pause();
}

Ranks& one_rank() {
  static OneRank alone;
  return alone;
}

Share share_of(int64_t items, int rank, int size) {
  const int64_t first = items * rank / size, end = items * (rank + 1) / size;
  return {first, end - first};
}

// A binomial tree: after step k, ranks below 2^k have the bytes.
void broadcast(Ranks& ranks, void* bytes, size_t count) {
  for (int have = 1; have < ranks.size(); have *= 2) {
    const int rank = ranks.rank();
    if (rank < have && rank + have < ranks.size()) ranks.send(rank + have, bytes, count);
    if (rank >= have && rank < 2 * have) ranks.receive(rank - have, bytes, count);
    ranks.wait();
  }
}

std::string broadcast(Ranks& ranks, const std::string& text) {
  auto length = static_cast<uint64_t>(text.size());
  broadcast(ranks, &length, sizeof length);
  std::string said = text;
  said.resize(length);
  broadcast(ranks, said.data(), said.size());
  return said;
}

void gather(Ranks& ranks, void* bytes, int64_t items, size_t item_bytes) {
  trade(ranks, bytes, item_bytes, [&](int rank) { return share_of(items, rank, ranks.size()); });
}

void gather(Ranks& ranks, void* bytes, const std::vector<Share>& shares, size_t item_bytes) {
  trade(ranks, bytes, item_bytes, [&](int rank) { return shares[static_cast<size_t>(rank)]; });
}

std::vector<int64_t> gather(Ranks& ranks, int64_t value) {
  std::vector<int64_t> values(static_cast<size_t>(ranks.size()));
  values[static_cast<size_t>(ranks.rank())] = value;
  gather(ranks, values.data(), ranks.size(), sizeof(int64_t));
  return values;
}

std::vector<std::string> gather(Ranks& ranks, const std::string& text) {
  std::vector<std::string> texts;
  for (const int64_t length : gather(ranks, std::ssize(text)))
    texts.emplace_back(static_cast<size_t>(length), ' ');
  const auto own = static_cast<size_t>(ranks.rank());
  texts[own] = text;
  for (int other = 0; other < ranks.size(); ++other) {
    if (other == ranks.rank()) continue;
    std::string& theirs = texts[static_cast<size_t>(other)];
    if (!theirs.empty()) ranks.receive(other, theirs.data(), theirs.size());
    if (!text.empty()) ranks.send(other, texts[own].data(), text.size());
  }
  ranks.wait();
  return texts;
}

int64_t largest_of(Ranks& ranks, int64_t value) {
  if (ranks.alone()) return value;
  const std::vector<int64_t> values = gather(ranks, value);
  return *std::max_element(values.begin(), values.end());
}

}  // namespace tessera
