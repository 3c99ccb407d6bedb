// Gradients of micro-batches, added up over ranks in buckets.

#include "apps/training/gradient_sum.h"

#include <doctest/doctest.h>

#include <map>

#include "apps/training/gradient_exchange.h"
#include "apps/training/leaf_arrivals.h"
#include "engine/core/random.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/optim/mixed.h"
#include "tests/mpi/thread_ranks.h"
#include "tests/training/few_steps.h"

using namespace tessera;

namespace {

using Numbers = std::vector<std::vector<double>>;

constexpr int64_t leaf_sizes[] = {5, 3, 1, 40, 7, 11};
constexpr size_t unread = 4, read_by_odd_parts = 2;  // leaves

std::vector<Tensor> make_leaves() {
  std::vector<Tensor> leaves;
  for (const int64_t size : leaf_sizes) leaves.push_back(Tensor::full({size}, 0.5).require_grad());
  return leaves;
}

// Reads the leaves in turn, each but one, and sums over functions of them that no two micro-batches share.
Tensor loss_of(const std::vector<Tensor>& leaves, int64_t part) {
  Random random(static_cast<uint64_t>(part) + 1);
  Tensor loss;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (i == unread || (i == read_by_odd_parts && part % 2 == 0)) continue;
    const Tensor factors = Tensor::empty(leaves[i].shape());
    for (int64_t k = 0; k < factors.elements(); ++k)
      factors.data<float>()[k] = static_cast<float>(random.normal());
    const Tensor term = sum(multiply(multiply(leaves[i], leaves[i]), factors.to(leaves[i].dtype())));
    loss = loss.defined() ? add(loss, term) : term;
  }
  return loss;
}

struct Step {
  Numbers gradients;
  int64_t sent_in_backward = 0;
};

// The leaves in bf16, which the tape reads.
struct Narrow {
  std::vector<Tensor> leaves;
  MixedWeights weights;
};

Narrow narrow_of(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> narrow;
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const Tensor& leaf : leaves) {
    narrow.push_back(leaf.to(DType::bf16).require_grad());
    pairs.emplace_back(leaf, narrow.back());
  }
  return {narrow, MixedWeights(pairs)};
}

Step step_on(Ranks& ranks, const std::vector<Tensor>& leaves, GradientSum& gradients, int64_t parts,
             const Narrow* narrow = nullptr) {
  Step step;
  gradients.begin(parts);
  const Share own = parts == 1 ? Share{0, 1} : share_of(parts, ranks);
  for (int64_t part = own.first; part < own.end(); ++part) {
    for (const Tensor& leaf : leaves) leaf.zero_grad();
    if (narrow)
      for (const Tensor& leaf : narrow->leaves) leaf.zero_grad();
    Tape tape;
    const Tensor loss = loss_of(narrow ? narrow->leaves : leaves, part);
    auto* threads = dynamic_cast<ThreadRanks*>(&ranks);
    const int64_t before = threads ? threads->sent() : 0;
    const auto sending = narrow ? gradients.send_early(part, tape, &narrow->leaves,
                                                       [&](size_t i) { narrow->weights.widen_gradient(i); })
                                : gradients.send_early(part, tape);
    tape.backward(loss);
    if (narrow && !sending) narrow->weights.widen_gradients();
    if (threads) step.sent_in_backward += threads->sent() - before;
    gradients.add(part);
  }
  if (own.count == 0)
    for (const Tensor& leaf : leaves) leaf.zero_grad();
  gradients.finish();
  for (const Tensor& leaf : leaves)
    step.gradients.push_back(leaf.grad().defined() ? leaf.grad().values() : std::vector<double>());
  return step;
}

Numbers gradients_alone(int64_t parts) {
  const std::vector<Tensor> leaves = make_leaves();
  GradientSum gradients(leaves, one_rank());
  return step_on(one_rank(), leaves, gradients, parts).gradients;
}

}  // namespace

TEST_CASE("gradients have the same bits on any number of ranks, in buckets of any size") {
  std::map<int64_t, Numbers> alone;
  for (const int64_t parts : {1, 2, 3, 5, 8, 13}) alone[parts] = gradients_alone(parts);
  for (const int size : {2, 3, 5})
    for (const int64_t bucket : {1, 12, 1000})
      on_threads(size, [&](ThreadRanks& ranks) {
        const std::vector<Tensor> leaves = make_leaves();
        GradientSum gradients(leaves, ranks, bucket);
        for (const auto& [parts, wanted] : alone) {
          const Numbers found = step_on(ranks, leaves, gradients, parts).gradients;
          CAPTURE(size);
          CAPTURE(bucket);
          CAPTURE(parts);
          CHECK(found == wanted);
        }
      });
}

TEST_CASE("buckets are sent off while the last micro-batch of a rank is read back") {
  on_threads(2, [&](ThreadRanks& ranks) {
    const std::vector<Tensor> leaves = make_leaves();
    GradientSum gradients(leaves, ranks, 12);
    CHECK(step_on(ranks, leaves, gradients, 4).sent_in_backward >= 3);  // the buckets but those of leaf 0
  });
}

TEST_CASE("bf16 gradients travel in buckets too, with the same bits") {
  for (const int64_t parts : {1, 2, 4, 7}) {
    const std::vector<Tensor> alone = make_leaves();
    const Narrow narrow_alone = narrow_of(alone);
    GradientSum sum_alone(alone, one_rank());
    const Numbers wanted = step_on(one_rank(), alone, sum_alone, parts, &narrow_alone).gradients;
    for (const int size : {2, 3, 4})
      on_threads(size, [&](ThreadRanks& ranks) {
        const std::vector<Tensor> leaves = make_leaves();
        const Narrow narrow = narrow_of(leaves);
        GradientSum gradients(leaves, ranks, 12);
        const Step found = step_on(ranks, leaves, gradients, parts, &narrow);
        CAPTURE(size);
        CAPTURE(parts);
        CHECK(found.gradients == wanted);
        if (share_of(parts, ranks).count > 0 && parts > 1) CHECK(found.sent_in_backward >= 3);
      });
  }
}

TEST_CASE("a step that is not finite on one rank is left out on all") {
  const auto trained = [](Ranks* ranks, bool bad) {
    How how{.options = {.micro_batch = 2, .smoothing = 0.1, .ranks = ranks}};
    if (bad) how.bad = {2};
    return train(how);
  };
  const Trained alone = trained(nullptr, true);
  on_threads(2, [&](ThreadRanks& ranks) {
    const Trained found = trained(&ranks, ranks.is_first());  // which has the first image
    for (size_t k = 0; k < found.results.size(); ++k) CHECK(found.results[k].trouble.has_value() == (k == 2));
    CHECK(found.results[2].trouble == alone.results[2].trouble);
    REQUIRE(found.numbers.size() == alone.numbers.size());
    for (size_t i = 0; i < found.numbers.size(); ++i)
      CHECK(found.numbers[i].second.values() == alone.numbers[i].second.values());
  });
}

TEST_CASE("an exchange allocates nothing but in its first step") {
  on_threads(3, [&](ThreadRanks& ranks) {
    constexpr int64_t parts = 7, elements = 1000;
    GradientExchange exchange(ranks, {{600, 400}, {0, 600}}, DType::f32);
    std::vector<Tensor> own;
    for (const Branch& branch : branches_of(share_of(parts, ranks)))
      own.push_back(Tensor::full({elements}, static_cast<double>(branch.count)));
    const auto step = [&] {
      exchange.begin(parts);
      exchange.start(own);
      exchange.move_on();
      exchange.start(own);
      return exchange.finish();
    };
    step();
    const int64_t before = allocations();
    for (int i = 0; i < 5; ++i) step();
    CHECK(allocations() == before);
    const std::vector<int64_t> one(3, allocations());
    CHECK(allocations() == before + 1);  // so the count counts
  });
}

TEST_CASE("the additions of a sum over branches are those of the whole tree") {
  for (int64_t parts = 1; parts < 40; ++parts)
    for (int size = 1; size <= 7; ++size) {
      std::vector<Branch> branches;
      for (int rank = 0; rank < size; ++rank)
        for (const Branch& branch : branches_of(share_of(parts, rank, size))) branches.push_back(branch);
      std::vector<std::string> terms;
      const auto name = [](auto&& self, int64_t first, int64_t count) -> std::string {
        if (count == 1) return std::to_string(first);
        int64_t half = 1;
        while (2 * half < count) half *= 2;
        return "(" + self(self, first, half) + "+" + self(self, first + half, count - half) + ")";
      };
      for (const auto& [first, count] : branches) terms.push_back(name(name, first, count));
      for (const auto& [into, from] : additions_of(branches))
        terms[into] = "(" + terms[into] + "+" + terms[from] + ")";
      CHECK(terms.front() == name(name, 0, parts));
    }
}
