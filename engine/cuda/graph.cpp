#include "engine/cuda/graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "engine/core/error.h"
#include "engine/cuda/side_stream.h"
#include "engine/cuda/stream.h"

namespace tessera {

namespace {

// The graph that this thread captures or refreshes. Other threads may work on streams of their own meanwhile.
thread_local Graph* captured = nullptr;
thread_local Graph* refreshed = nullptr;

// The stream of copies that are not captured.
const SideStream& side_stream() {
  static const SideStream& side = *new SideStream;  // the driver may be gone when statics die
  return side;
}

// The stream and events of a Branch. They must be made outside of captures.
struct BranchParts {
  SideStream stream;
  StreamEvent forks, joins;
};
const BranchParts& branch_parts() {
  static const BranchParts& parts = *new BranchParts;
  return parts;
}

// Two pinned buffers: one is filled while copies from the other are under way.
class PinnedBuffers {
 public:
  PinnedBuffers() {
    for (Buffer& buffer : buffers_) expect(cudaMallocHost(&buffer.bytes, size), "pinned memory");
  }

  void send(std::byte* to, const std::byte* from, size_t bytes) {
    std::lock_guard lock(mutex_);
    while (bytes > 0) {
      if (used_ == size) exchange();
      const size_t part = std::min(bytes, size - used_);
      std::byte* place = static_cast<std::byte*>(buffers_[now_].bytes) + used_;
      std::memcpy(place, from, part);
      expect(cudaMemcpyAsync(to, place, part, cudaMemcpyHostToDevice, stream()), "copy to the GPU");
      used_ = std::min(size, (used_ + part + 63) / 64 * 64);
      to += part, from += part, bytes -= part;
      buffers_[now_].sent[stream()].record();
    }
    forbid_early_start();
  }

 private:
  static constexpr size_t size = size_t{16} << 20;

  struct Buffer {
    void* bytes = nullptr;
    std::map<cudaStream_t, StreamEvent> sent;  // behind the last copy on each stream
  };

  void exchange() {
    now_ = 1 - now_;
    for (const auto& [of, sent] : buffers_[now_].sent) sent.make_host_wait();
    used_ = 0;
  }

  std::mutex mutex_;
  std::array<Buffer, 2> buffers_;
  size_t now_ = 0, used_ = 0;
};

// A capture, which its destructor ends if an error has left it open.
class Capture {
 public:
  Capture(Graph* graph, const BlockSet& blocks) : blocks_(blocks) {
    check(captured == nullptr, "graph: a capture within a capture");
    expect(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "graph");
    captured = graph;
    forbid_early_start();
    blocks_.begin();
  }
  ~Capture() {
    if (captured == nullptr) return;
    cudaGraph_t broken = nullptr;
    if (cudaStreamEndCapture(stream(), &broken) == cudaSuccess && broken) cudaGraphDestroy(broken);
    cudaGetLastError();
    close();
  }
  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    close();
    expect(cudaStreamEndCapture(stream(), &graph), "graph: the step cannot be captured (--no-graph runs it)");
    cudaGraphExec_t ready = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    expect(status, "graph");
    return ready;
  }

 private:
  void close() {
    blocks_.end();
    captured = nullptr;
  }

  const BlockSet& blocks_;
};

}  // namespace

Graph::Graph(const std::function<void()>& work) : blocks_(Device::cuda) {
  side_stream();  // made outside the capture
  branch_parts();
  Capture capture(this, blocks_);
  work();
  graph_ = capture.end();
}

Graph::~Graph() {
  cudaStreamSynchronize(stream());
  if (graph_) cudaGraphExecDestroy(graph_);
}

void Graph::run(std::span<const uint64_t> keys, const std::function<void()>& refresh) {
  check(keys.size() == keys_.size(), "graph: ", keys.size(), " keys for a step that draws by ", keys_.size());
  numbers_.set_keys(keys);
  struct Refreshing {
    explicit Refreshing(Graph* graph) { refreshed = graph; }
    ~Refreshing() { refreshed = nullptr; }
  };
  next_table_ = 0;
  {
    const Refreshing now(this);
    refresh();
  }
  check(next_table_ == tables_.size(), "graph: ", next_table_, " of ", tables_.size(),
        " tables were refreshed");
  numbers_.upload();
  expect(cudaGraphLaunch(graph_, stream()), "graph");
  forbid_early_start();
}

bool Graph::capturing() { return captured != nullptr; }
bool Graph::refreshing() { return refreshed != nullptr; }

DrawKey Graph::draw_key(uint64_t key) {
  if (!captured) return {key, nullptr};
  std::vector<uint64_t>& keys = captured->keys_;
  const auto at = std::find(keys.begin(), keys.end(), key);
  const size_t place = static_cast<size_t>(at - keys.begin());
  if (at == keys.end()) {
    check(keys.size() < GraphNumbers::most_keys, "graph: a step draws by more than ", GraphNumbers::most_keys,
          " keys");
    keys.push_back(key);
  }
  return {key, captured->numbers_.place_of_key(place)};
}

void Graph::copy_constant(void* to, const void* from, size_t bytes) {
  const SideStream::On on(side_stream());
  expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "graph: constant");
  synchronize();
}

Branch::Branch(bool wanted) {
  if (!wanted || !captured || !gpu().branches) return;
  const BranchParts& parts = branch_parts();
  parts.forks.record();
  stream_ = &parts.stream;
  run([&] { parts.forks.make_stream_wait(); });
}

Branch::~Branch() {
  if (!stream_) return;
  try {
    run([] { branch_parts().joins.record(); });
    branch_parts().joins.make_stream_wait();
  } catch (const Error&) {
  }  // the end of the capture reports the error
}

void upload(void* to, const void* from, size_t bytes) {
  static PinnedBuffers& buffers = *new PinnedBuffers;  // as the side stream
  buffers.send(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

GraphNumbers::GraphNumbers()
    : memory_(Device::cuda, most_keys * sizeof(uint64_t) + table_bytes), host_(memory_.bytes()) {}

void* GraphNumbers::place_of_table(size_t bytes) {
  if (bytes > table_bytes - tables_end_) return nullptr;
  void* const place = reinterpret_cast<std::byte*>(middle()) + tables_end_;
  tables_end_ = std::min(table_bytes, (tables_end_ + bytes + 63) / 64 * 64);
  return place;
}

std::byte* GraphNumbers::on_host(const void* place) {
  return host_.data() +
         (static_cast<const std::byte*>(place) - static_cast<const std::byte*>(memory_.data()));
}

bool GraphNumbers::set_table(const void* place, const void* values, size_t bytes) {
  const auto* const first = reinterpret_cast<const std::byte*>(middle());
  if (std::less<>()(place, static_cast<const void*>(first)) ||
      !std::less<>()(place, static_cast<const void*>(first + table_bytes)))
    return false;
  std::memcpy(on_host(place), values, bytes);
  return true;
}

void GraphNumbers::set_keys(std::span<const uint64_t> keys) {
  keys_ = keys.size();
  for (size_t i = 0; i < keys_; ++i) std::memcpy(on_host(place_of_key(i)), &keys[i], sizeof keys[i]);
}

void GraphNumbers::upload() const {
  const size_t bytes = keys_ * sizeof(uint64_t) + tables_end_;
  if (bytes == 0) return;
  const size_t first = (most_keys - keys_) * sizeof(uint64_t);
  tessera::upload(static_cast<std::byte*>(memory_.data()) + first, host_.data() + first, bytes);
}

TableMemory::TableMemory(const void* values, size_t bytes, TableKind numbers) {
  if (refreshed) {
    if (numbers == TableKind::constant) return;  // the graph has it
    check(refreshed->next_table_ < refreshed->tables_.size(), "graph: a table that the capture did not have");
    const Graph::TablePlace& table = refreshed->tables_[refreshed->next_table_++];
    check(bytes <= table.bytes, "graph: a table of ", bytes, " bytes, captured with ", table.bytes);
    data_ = table.place;
    if (!refreshed->numbers_.set_table(data_, values, bytes)) upload(data_, values, bytes);
    return;
  }
  const bool of_graph = captured && numbers == TableKind::refreshed;
  if (of_graph) data_ = captured->numbers_.place_of_table(bytes);
  if (!data_) {
    const ConstantBlocks constant;
    owned_ = std::make_unique<Storage>(Device::cuda, bytes);
    data_ = owned_->data();
  }
  if (of_graph)
    captured->tables_.push_back({data_, bytes, std::move(owned_)});
  else if (captured)
    Graph::copy_constant(data_, values, bytes);
  else
    upload(data_, values, bytes);
}

}  // namespace tessera
