#pragma once

// Several processes that compute one run: each takes a share of every batch's micro-batches, and all end a
// step with the same bits, which do not depend on their number.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Messages of one channel from one rank to another are received in the order in which they were sent.
enum class Channel { calls, sums, totals };

/// The processes of a run, numbered from 0, and messages between them. One thread at a time may use it.
class Ranks {
 public:
  Ranks() = default;
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  virtual int rank() const = 0;  ///< this process
  virtual int size() const = 0;
  /// The ranks of this machine: which of them this process is, and how many there are.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  bool alone() const { return size() == 1; }
  bool is_first() const { return rank() == 0; }  ///< the one that prints and writes files

  /// Begin a transfer and return its number, counted from 1. The bytes must stay until it is done.
  virtual int64_t send(int to, const void* bytes, size_t count, Channel channel) = 0;
  virtual int64_t receive(int from, void* bytes, size_t count, Channel channel) = 0;
  int64_t send(int to, const void* bytes, size_t count) { return send(to, bytes, count, Channel::calls); }
  int64_t receive(int from, void* bytes, size_t count) { return receive(from, bytes, count, Channel::calls); }
  /// Moves transfers on, and returns the number of the last one before which all are done.
  virtual int64_t done() = 0;
  void wait(int64_t number);      ///< until this transfer and all that were begun before it are done
  void wait() { wait(begun()); }  ///< until all are done

 protected:
  virtual int64_t begun() const = 0;  ///< the number of the transfer that was begun last
  virtual void pause() const {}       ///< called while wait() finds nothing to do
};

/// The one rank of a process that runs alone.
Ranks& one_rank();

/// Items [first, first + count) of a list, those of one rank.
struct Share {
  int64_t first = 0, count = 0;
  int64_t end() const { return first + count; }
};

/// The share of `rank` in `items` that `size` ranks cut into consecutive parts, as even as can be.
Share share_of(int64_t items, int rank, int size);
inline Share share_of(int64_t items, const Ranks& ranks) {
  return share_of(items, ranks.rank(), ranks.size());
}

/// Gives every rank rank 0's bytes.
void broadcast(Ranks& ranks, void* bytes, size_t count);
std::string broadcast(Ranks& ranks, const std::string& text);

/// `bytes` holds `items` items of one size, of which each rank has made its share_of(); afterwards every rank
/// has all of them.
void gather(Ranks& ranks, void* bytes, int64_t items, size_t item_bytes);

/// The same where rank r has made items shares[r], which follow one another.
void gather(Ranks& ranks, void* bytes, const std::vector<Share>& shares, size_t item_bytes);

/// What each rank says, in their order.
std::vector<int64_t> gather(Ranks& ranks, int64_t value);
std::vector<std::string> gather(Ranks& ranks, const std::string& text);

/// The largest of the ranks' values.
int64_t largest_of(Ranks& ranks, int64_t value);

}  // namespace tessera
