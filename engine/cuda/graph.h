#pragma once

// A training step as one CUDA graph: captured once, then replayed with a single call of the driver.

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/device.h"
#include "engine/core/pool.h"
#include "engine/core/replay.h"
#include "engine/core/storage.h"

namespace tessera {

// A key of random draws (philox) as a kernel takes it: the number itself, or the place in device memory where
// a graph's next replay puts it.
struct DrawKey {
  uint64_t value = 0;
  const uint64_t* place = nullptr;
  TESSERA_HD uint64_t operator()() const { return place ? *place : value; }
};

// What `work` did on the stream while it was captured; nothing of it has run yet. The graph owns all memory
// that was taken meanwhile. A tensor made of host numbers (Tensor::to(cuda)) becomes a constant of the graph;
// what changes from step to step is told by DrawKey and Table. Fails where the step cannot be captured, as
// where it reads a number back.
class Graph final : public Replay {
 public:
  explicit Graph(const std::function<void()>& work);
  ~Graph() override;

  const std::vector<uint64_t>& keys() const override { return keys_; }
  void run(std::span<const uint64_t> keys, const std::function<void()>& refresh) override;

  // --- for kernels and copies ---

  // Whether a step is being captured: what would read device memory on the host (a check of labels, say) is
  // left out then; the first step, which is not captured, has made it.
  static bool capturing();
  static bool refreshing();  // whether run() calls its refresh()
  static DrawKey draw_key(uint64_t key);
  // Puts host numbers in a new block of the graph (ConstantBlocks), now.
  static void copy_constant(void* to, const void* from, size_t bytes);

 private:
  friend class TableMemory;

  BlockSet blocks_;
  cudaGraphExec_t graph_ = nullptr;
  std::vector<uint64_t> keys_;
  Storage key_places_;
  std::vector<std::unique_ptr<Storage>> tables_;  // in the order of their making
  size_t next_table_ = 0;                         // of a refresh
};

// Copies host numbers to device memory through pinned buffers: they may change as soon as this returns, and
// the host does not wait for the device unless more than the buffers hold is on its way.
void upload(void* to, const void* from, size_t bytes);

// Whether the numbers of a table are other ones at each step.
enum class TableKind : uint8_t { refreshed, constant };

// The memory of a Table.
class TableMemory {
 public:
  TableMemory(const void* values, size_t bytes, TableKind numbers);
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;
  void* data() const { return storage_ ? storage_->data() : nullptr; }

 private:
  Storage* storage_;  // null for a constant while a graph is refreshed
  bool owned_;
};

// Host numbers that a kernel reads in device memory, for this call: in a captured step they are refreshed
// before each replay, unless they are said to be constant.
template <class T> class Table {
 public:
  Table(const T* values, int64_t count, TableKind numbers = TableKind::refreshed)
      : memory_(values, static_cast<size_t>(count) * sizeof(T), numbers) {}
  const T* data() const { return static_cast<const T*>(memory_.data()); }

 private:
  TableMemory memory_;
};

}  // namespace tessera
