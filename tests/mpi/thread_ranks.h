#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/training/ranks.h"
#include "tests/mpi/allocations.h"

namespace tessera {

/// Ranks that are threads of this process, for tests.
class ThreadRanks : public Ranks {
 public:
  struct Mail {
    explicit Mail(int size) : boxes(static_cast<size_t>(size * size)) {}
    std::mutex lock;
    std::vector<std::array<std::deque<std::vector<std::byte>>, 3>> boxes;  // by sender, receiver, channel
  };

  ThreadRanks(Mail& mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return size_; }

  using Ranks::receive;
  using Ranks::send;

  int64_t send(int to, const void* bytes, size_t count, Channel channel) override {
    const NotCounted not_counted;
    const std::lock_guard lock(mail_.lock);
    const auto* first = static_cast<const std::byte*>(bytes);
    box(rank_, to, channel).emplace_back(first, first + count);
    open_.push_back({});
    ++sent_;
    return ++begun_;
  }

  int64_t receive(int from, void* bytes, size_t count, Channel channel) override {
    const NotCounted not_counted;
    open_.push_back({from, bytes, count, channel});
    return ++begun_;
  }

  int64_t done() override {
    const NotCounted not_counted;
    const std::lock_guard lock(mail_.lock);
    for (; !open_.empty(); open_.pop_front())
      if (!complete(open_.front())) break;
    return begun_ - std::ssize(open_);
  }

  int64_t sent() const { return sent_; }

 protected:
  int64_t begun() const override { return begun_; }
  void pause() const override { std::this_thread::yield(); }

 private:
  struct Receipt {
    int from = -1;  // -1: a message that was sent, which the mail has at once
    void* bytes = nullptr;
    size_t count = 0;
    Channel channel{};
  };

  std::deque<std::vector<std::byte>>& box(int from, int to, Channel channel) {
    return mail_.boxes[static_cast<size_t>(from * size_ + to)][static_cast<size_t>(channel)];
  }

  bool complete(const Receipt& receipt) {
    if (receipt.from < 0) return true;
    auto& messages = box(receipt.from, rank_, receipt.channel);
    if (messages.empty()) return false;
    if (messages.front().size() != receipt.count) std::abort();  // ranks that do not agree
    std::ranges::copy(messages.front(), static_cast<std::byte*>(receipt.bytes));
    messages.pop_front();
    return true;
  }

  Mail& mail_;
  int rank_, size_;
  int64_t begun_ = 0, sent_ = 0;
  std::deque<Receipt> open_;
};

/// Runs work(ranks) on as many threads as there are ranks.
inline void on_threads(int size, const std::function<void(ThreadRanks&)>& work) {
  ThreadRanks::Mail mail(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&mail, &work, rank, size] {
      ThreadRanks ranks(mail, rank, size);
      work(ranks);
    });
}

}  // namespace tessera
