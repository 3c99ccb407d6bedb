#pragma once

// A training step as one CUDA graph: captured once, then replayed by a single call of the driver.

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

// A key of random draws (philox) for a kernel: the number itself, or the place in device memory where a
// replay of the graph puts it.
struct DrawKey {
  uint64_t value = 0;
  const uint64_t* place = nullptr;
  TESSERA_HD uint64_t operator()() const { return place ? *place : value; }
};

// The numbers that a replay uploads, keys and tables, lie in one piece of device memory, so that one copy
// brings them all: keys downwards from its middle, tables upwards.
class GraphNumbers {
 public:
  static constexpr size_t most_keys = 1 << 12, table_bytes = 1 << 15;

  GraphNumbers();
  const uint64_t* place_of_key(size_t i) const { return middle() - 1 - i; }
  // The place of the next table, or null where the tables take more than there is room for.
  void* place_of_table(size_t bytes);
  // Whether this is the place of a table here; then upload() brings the values.
  bool set_table(const void* place, const void* values, size_t bytes);
  void set_keys(std::span<const uint64_t> keys);
  void upload() const;  // what was set

 private:
  uint64_t* middle() const { return static_cast<uint64_t*>(memory_.data()) + most_keys; }
  std::byte* on_host(const void* place);

  Storage memory_;
  std::vector<std::byte> host_;
  size_t keys_ = 0, tables_end_ = 0;
};

// Captures what `work` does on the stream, without running it. The graph owns all memory that `work` takes. A
// tensor that `work` copies from the host (Tensor::to(cuda)) becomes a constant of the graph; numbers that
// change from step to step must go through DrawKey or Table. Fails for work that cannot be captured, such as
// reading a number back.
class Graph final : public Replay {
 public:
  explicit Graph(const std::function<void()>& work);
  ~Graph() override;

  const std::vector<uint64_t>& keys() const override { return keys_; }
  void run(std::span<const uint64_t> keys, const std::function<void()>& refresh) override;

  // --- for kernels and copies ---

  // Whether this thread captures a step. Ops then skip what would read device memory on the host, such as the
  // check of labels; the first step, which is not captured, has made it.
  static bool capturing();
  static bool refreshing();  // whether run() is calling refresh() on this thread
  static DrawKey draw_key(uint64_t key);
  // Copies host numbers into a block of the graph that was made under ConstantBlocks, at once.
  static void copy_constant(void* to, const void* from, size_t bytes);

 private:
  friend class TableMemory;

  BlockSet blocks_;
  cudaGraphExec_t graph_ = nullptr;
  std::vector<uint64_t> keys_;
  GraphNumbers numbers_;
  struct TablePlace {
    void* place;
    size_t bytes;
    std::unique_ptr<Storage> own;  // of a table that has no place among the numbers
  };
  std::vector<TablePlace> tables_;  // in the order in which they were made
  size_t next_table_ = 0;           // the next one that refresh() will fill
};

// Copies host numbers to device memory through pinned buffers. They may change as soon as this returns. The
// host waits for the device only if more than the buffers hold is under way.
void upload(void* to, const void* from, size_t bytes);

// Whether the numbers of a table change from step to step (they are refreshed before each replay).
enum class TableKind : uint8_t { refreshed, constant };

// The device memory of a Table.
class TableMemory {
 public:
  TableMemory(const void* values, size_t bytes, TableKind numbers);
  ~TableMemory() = default;
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;            // null for a constant while a graph is refreshed
  std::unique_ptr<Storage> owned_;  // null for a table of a graph
};

// A copy of host numbers in device memory, for a kernel of this call. In a captured step it is refreshed
// before each replay, unless it is a constant.
template <class T> class Table {
 public:
  Table(const T* values, int64_t count, TableKind numbers = TableKind::refreshed)
      : memory_(values, static_cast<size_t>(count) * sizeof(T), numbers) {}
  const T* data() const { return static_cast<const T*>(memory_.data()); }

 private:
  TableMemory memory_;
};

}  // namespace tessera
