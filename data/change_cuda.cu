// Applies the changes of a batch's images on the GPU, one block an image, in shared memory: the twin of
// apply() in operation.h, by the same scalar maths.

#include "data/augment/affine_kernels.h"
#include "data/augment/colour_kernels.h"
#include "data/feed_cuda.h"
#include "engine/cuda/reduce.h"

namespace tessera {

namespace {

constexpr int values = 256;
constexpr int values_a_lane = values / warp;

// The shared memory of a block: the image, a second buffer to write it to, and source positions for each row
// and column.
struct Room {
  uint8_t *now, *next;
  int* places;  // [width + height]
  int height, width;

  __device__ int area() const { return height * width; }
  __device__ Pixels pixels() const { return {now, height, width}; }
};

constexpr size_t packed_size(size_t bytes) { return (bytes + 15) / 16 * 16; }

// The bytes of that memory.
size_t memory_for(int height, int width) {
  return 2 * packed_size(size_t{3} * static_cast<size_t>(height * width)) +
         sizeof(int) * static_cast<size_t>(height + width);
}

__device__ Room room_for(int height, int width) {
  const size_t bytes = packed_size(size_t{3} * static_cast<size_t>(height * width));
  uint8_t* memory = shared_memory<uint8_t>();
  return {memory, memory + bytes, reinterpret_cast<int*>(memory + 2 * bytes), height, width};
}

// Calls write(y, x, to) for all pixels of the second buffer, which then becomes the image.
template <class F> __device__ void rewrite(Room& room, const F& write) {
  for (int p = static_cast<int>(threadIdx.x); p < room.area(); p += static_cast<int>(blockDim.x))
    write(p / room.width, p % room.width, room.next + 3 * p);
  __syncthreads();
  uint8_t* const before = room.now;
  room.now = room.next;
  room.next = before;
}

// Calls change(pixel) for all pixels, in place.
template <class F> __device__ void each_pixel(const Room& room, const F& change) {
  for (int p = static_cast<int>(threadIdx.x); p < room.area(); p += static_cast<int>(blockDim.x))
    change(room.now + 3 * p);
  __syncthreads();
}

// --- moves ---

__device__ void shift(Room& room, int down, int right) {
  const Pixels from = room.pixels();
  rewrite(room, [&](int y, int x, uint8_t* to) {
    const int row = y + down, column = x + right;
    const bool inside = row >= 0 && row < from.height && column >= 0 && column < from.width;
    const uint8_t* pixel = from.at(inside ? row : 0, inside ? column : 0);
    for (int c = 0; c < 3; ++c) to[c] = inside ? pixel[c] : uint8_t{0};
  });
}

__device__ void scale_nearest(Room& room, const Affine& map, const Colour& fill) {
  int *columns = room.places, *rows = columns + room.width;
  if (threadIdx.x == 0) column_positions(map, room.width, columns);
  if (threadIdx.x == warp) row_positions(map, room.height, rows);
  __syncthreads();
  const Pixels from = room.pixels();
  rewrite(room, [&](int y, int x, uint8_t* to) {
    set_pixel(to, rows[y] < 0 || columns[x] < 0 ? fill.data() : from.at(rows[y], columns[x]));
  });
}

__device__ void move(Room& room, const Change& change) {
  const Affine map = change.map;
  const Pixels from = room.pixels();
  if (change.filter == Filter::bicubic) {
    rewrite(room, [&](int y, int x, uint8_t* to) {
      write_filtered<CubicFilter>(from, map, y, x, change.fill, to);
    });
  } else if (change.filter == Filter::bilinear) {
    rewrite(room, [&](int y, int x, uint8_t* to) {
      write_filtered<LinearFilter>(from, map, y, x, change.fill, to);
    });
  } else if (map.b == 0 && map.d == 0) {
    scale_nearest(room, map, change.fill);
  } else {
    const FixedMap fixed(map);
    rewrite(room, [&](int y, int x, uint8_t* to) { fixed.write(from, y, x, change.fill, to); });
  }
}

// --- colours ---

using Counts = int[3][values];
using Tables = uint8_t[3][values];

// Uses one table for all channels.
template <class F> __device__ void tabulate(Tables& tables, const F& f) {
  for (int v = static_cast<int>(threadIdx.x); v < values; v += static_cast<int>(blockDim.x))
    tables[0][v] = tables[1][v] = tables[2][v] = f(v);
}

__device__ void count(const Room& room, Counts& counts) {
  for (int i = static_cast<int>(threadIdx.x); i < 3 * values; i += static_cast<int>(blockDim.x))
    counts[i / values][i % values] = 0;
  __syncthreads();
  each_pixel(room, [&](const uint8_t* pixel) {
    for (int c = 0; c < 3; ++c) atomicAdd(&counts[c][pixel[c]], 1);
  });
}

struct Largest {
  template <class W> TESSERA_HD static W of(W a, W b) { return a > b ? a : b; }
};

// Calls f(channel, lane) in the first three warps, one warp a channel.
template <class F> __device__ void each_channel(const F& f) {
  const int channel = own_warp();
  if (channel < 3) f(channel, own_lane());
}

// Computes the largest and the smallest value of a channel; called by a whole warp.
struct Ends {
  int low, high;

  __device__ Ends(const int* counts, int lane) {
    int above = -1, below = -1;
    for (int v = lane; v < values; v += warp) {
      if (counts[v] == 0) continue;
      above = v;
      if (below < 0) below = values - 1 - v;
    }
    high = warp_all<Largest>(above);
    low = values - 1 - warp_all<Largest>(below);
  }
};

__device__ void tabulate_stretch(const Counts& counts, Tables& tables) {
  each_channel([&](int c, int lane) {
    const Ends ends(counts[c], lane);
    const Stretch stretch(ends.low, ends.high);
    for (int v = lane; v < values; v += warp) tables[c][v] = stretch(v);
  });
}

__device__ void tabulate_equalization(const Counts& counts, int pixels, Tables& tables) {
  each_channel([&](int c, int lane) {
    const int first = lane * values_a_lane;
    int own = 0;
    for (int i = 0; i < values_a_lane; ++i) own += counts[c][first + i];
    int darker = own;  // prefix sum over the lanes up to this one
    for (int step = 1; step < warp; step *= 2) {
      const int before = __shfl_sync(0xffffffffu, darker, lane - step);
      if (lane >= step) darker += before;
    }
    darker -= own;
    const Equalizer equalizer(pixels, counts[c][Ends(counts[c], lane).high]);
    for (int v = first; v < first + values_a_lane; ++v) {
      tables[c][v] = equalizer(v, darker);
      darker += counts[c][v];
    }
  });
}

__device__ int mean_luminance(const Room& room) {
  int sum = 0;
  for (int p = static_cast<int>(threadIdx.x); p < room.area(); p += static_cast<int>(blockDim.x))
    sum += luminance(room.now[3 * p], room.now[3 * p + 1], room.now[3 * p + 2]);
  return rounded_mean(block_sum(sum), room.area());
}

__device__ void sharpen(Room& room, float factor) {
  const Pixels from = room.pixels();
  if (from.height < 3 || from.width < 3) return;
  rewrite(room, [&](int y, int x, uint8_t* to) {
    const uint8_t* pixel = from.at(y, x);
    const bool border = y == 0 || x == 0 || y == from.height - 1 || x == from.width - 1;
    for (int c = 0; c < 3; ++c)
      to[c] = border ? pixel[c] : sharpened(pixel + c, int64_t{3} * from.width, factor);
  });
}

__device__ void saturate(const Room& room, float factor) {
  each_pixel(room, [&](uint8_t* pixel) {
    const int grey = luminance(pixel[0], pixel[1], pixel[2]);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], factor);
  });
}

// Fills the tables of an operation that maps each value by a table.
__device__ void make_tables(const Room& room, Operation operation, double m, Counts& counts, Tables& tables) {
  const auto factor = static_cast<float>(m);
  switch (operation) {
    case Operation::contrast: {
      const int mean = mean_luminance(room);
      return tabulate(tables, [=](int v) { return blend(mean, v, factor); });
    }
    case Operation::brightness:
      return tabulate(tables, [=](int v) { return blend(0, v, factor); });
    case Operation::posterize:
      return tabulate(tables, [=](int v) { return posterized(v, static_cast<int>(m)); });
    case Operation::solarize:
      return tabulate(tables, [=](int v) { return solarized(v, m); });
    case Operation::solarize_add:
      return tabulate(tables, [=](int v) { return solarize_added(v, static_cast<int>(m), 128); });
    case Operation::auto_contrast:
      count(room, counts);
      return tabulate_stretch(counts, tables);
    case Operation::equalize:
      count(room, counts);
      return tabulate_equalization(counts, room.area(), tables);
    default:
      return tabulate(tables, [](int v) { return inverted(v); });
  }
}

__device__ void colour(Room& room, Operation operation, double m) {
  __shared__ int counts[3][values];
  __shared__ uint8_t tables[3][values];
  if (operation == Operation::color) return saturate(room, static_cast<float>(m));
  if (operation == Operation::sharpness) return sharpen(room, static_cast<float>(m));
  make_tables(room, operation, m, counts, tables);
  __syncthreads();
  each_pixel(room, [&](uint8_t* pixel) {
    for (int c = 0; c < 3; ++c) pixel[c] = tables[c][pixel[c]];
  });
}

// --- an image ---

__device__ void apply(Room& room, const Change& change) {
  const Pixels from = room.pixels();
  switch (change.kind) {
    case Change::Kind::flip:
      return rewrite(room, [&](int y, int x, uint8_t* to) { set_pixel(to, from.at(y, from.width - 1 - x)); });
    case Change::Kind::shift:
      return shift(room, change.down, change.right);
    case Change::Kind::turn:
      return rewrite(room, [&](int y, int x, uint8_t* to) {
        const PixelPlace place = before_turns(change.quarters, y, x, from.height, from.width);
        set_pixel(to, from.at(place.row, place.column));
      });
    case Change::Kind::move:
      return move(room, change);
    case Change::Kind::colour:
      return colour(room, change.operation, change.magnitude);
  }
}

// Copies by the whole block. If `bytes` is a multiple of 16, `from` and `to` must be aligned to 16.
__device__ void copy_bytes(const uint8_t* from, uint8_t* to, int bytes) {
  const int step = bytes % 16 == 0 ? 16 : 1;
  for (int i = static_cast<int>(threadIdx.x) * step; i < bytes; i += static_cast<int>(blockDim.x) * step) {
    if (step == 16)
      store_pack<16>(to + i, load_pack<16>(from + i));
    else
      to[i] = from[i];
  }
  __syncthreads();
}

// Limits registers to a quarter of a multiprocessor's, so that four blocks share it.
__global__ __launch_bounds__(block_threads, 4) void change(ChangeWork work) {
  wait_for_previous_kernel();
  const int bytes = 3 * work.height * work.width;
  for (int64_t i = blockIdx.x; i < work.images; i += gridDim.x) {
    Room room = room_for(work.height, work.width);
    copy_bytes(work.set + work.records[i].index * bytes, room.now, bytes);
    for (int k = 0; k < work.records[i].changes; ++k) apply(room, work.changes[i * work.most_changes + k]);
    copy_bytes(room.now, work.to + i * bytes, bytes);
  }
}

}  // namespace

bool can_change_pictures(int height, int width) {
  constexpr size_t fixed = sizeof(Counts) + sizeof(Tables) + 1024;  // and the shared memory of block_sum
  return int64_t{height} * width < 1 << 20 &&
         memory_for(height, width) + fixed <= static_cast<size_t>(gpu().shared_bytes);
}

void change_pictures(const ChangeWork& work) {
  launch(change,
         LaunchGrid{dim3(static_cast<unsigned>(work.images)), dim3(block_threads),
                    memory_for(work.height, work.width)},
         work);
}

}  // namespace tessera
