#include "engine/core/per_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace tessera;

namespace {

std::atomic<int> made{0}, destroyed{0};

struct Counted {
  Counted() { ++made; }
  ~Counted() { ++destroyed; }
  int value = 0;
};

}  // namespace

TEST_CASE("PerThread: every thread has one of its own, which ends with the thread") {
  static const PerThread<Counted> counted;
  counted.of_this_thread().value = 5;
  int of_other = -1, of_other_again = -1;
  std::thread([&] {
    of_other = counted.of_this_thread().value;
    counted.of_this_thread().value = 7;
    of_other_again = counted.of_this_thread().value;
  }).join();
  CHECK(of_other == 0);
  CHECK(of_other_again == 7);
  CHECK(counted.of_this_thread().value == 5);
  CHECK(made == 2);
  CHECK(destroyed == 1);
}
