#pragma once

#include "apps/training/ranks.h"

namespace tessera {

/// The first `count` of some ranks, of which this process is one.
class FirstRanks : public Ranks {
 public:
  FirstRanks(Ranks& all, int count) : all_(all), count_(count) {}

  int rank() const override { return all_.rank(); }
  int size() const override { return count_; }
  int local_rank() const override { return all_.local_rank(); }
  int local_size() const override { return all_.local_size(); }

  using Ranks::receive;
  using Ranks::send;
  int64_t send(int to, const void* bytes, size_t count, Channel channel) override {
    return begun_ = all_.send(to, bytes, count, channel);
  }
  int64_t receive(int from, void* bytes, size_t count, Channel channel) override {
    return begun_ = all_.receive(from, bytes, count, channel);
  }
  int64_t done() override { return all_.done(); }

 protected:
  int64_t begun() const override { return begun_; }

 private:
  Ranks& all_;
  int count_;
  int64_t begun_ = 0;
};

}  // namespace tessera
