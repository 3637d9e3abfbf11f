// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/call.h"
#include "comm/grpc/wire.h"

namespace lockstep {

// What the elements of a `data` frame are: inputs that are still to be summed (offset counted in
// the receiver's block), or final elements (offset counted in the output).
enum class Phase : std::uint8_t { input, result };

// Where a transfer sends elements to; `body` stays in place until the collective is over.
class DataSender {
 public:
  virtual void send_data(int rank, Phase phase, std::int64_t offset,
                         std::span<const std::byte> body) = 0;

 protected:
  ~DataSender() = default;
};

// One rank's share of the arithmetic and the data of one collective.
//
// Small inputs travel with the message by which a rank enters, to all, and each rank sums them
// itself. Large ones start when all have entered. An all_reduce or reduce_scatter then cuts the
// elements into one block per rank: each rank sends every block to its owner; the owner sums the
// blocks of all ranks, chunk by chunk as the last of a chunk arrives, in tree order; and in an
// all_reduce sends each summed chunk to all others: 2 (n - 1) / n of the bytes go out of every rank,
// in two steps that overlap. A result's chunk arrives only after its input was received, so that
// results may overwrite inputs.
//
// open(), then start() once and receive() for every data frame, at most one of each at a time. A
// frame may come before start(): its sender knew earlier that all had entered.
class Transfer {
 public:
  Transfer(int rank, int size);

  void open(const CollectiveCall& call, std::span<const std::int64_t> counts, const void* in,
            void* out);
  // The part of a small input that `rank` needs; empty for a large one.
  std::span<const std::byte> payload_for(int rank) const;
  // All have entered; `payloads` came with it, by rank.
  void start(std::span<const std::vector<std::byte>> payloads, DataSender& sender);
  // Throws PeerError for a frame that does not belong.
  void receive(int rank, Phase phase, std::int64_t offset, Message& elements, DataSender& sender);
  // All that large inputs brought is in the output. Needs start().
  bool complete() const { return missing_ == 0; }

 private:
  struct Inbox {
    std::vector<Message> inputs;  // of a chunk, by rank
    int received = 0;
  };

  bool is_small(std::int64_t elements) const;
  bool reduces() const;
  std::size_t bytes(std::int64_t elements) const;
  std::int64_t block_begin(int rank) const;
  std::int64_t block_count(int rank) const;
  std::int64_t gathered_count(int rank) const;
  void open_inboxes();
  void sum_payloads(std::span<const std::vector<std::byte>> payloads);
  void gather_payloads(std::span<const std::vector<std::byte>> payloads);
  void send(int rank, Phase phase, std::int64_t offset, const std::byte* from, std::int64_t count,
            DataSender& sender) const;
  void send_to_others(std::int64_t offset, const std::byte* from, std::int64_t count,
                      DataSender& sender) const;
  void receive_input(int rank, std::int64_t offset, Message& elements, DataSender& sender);
  void receive_result(std::int64_t offset, Message& elements);
  void sum_chunk(Inbox& inbox, std::int64_t offset, std::int64_t count, std::byte* to);

  const int rank_, size_;
  CollectiveCall call_;
  std::vector<std::int64_t> counts_;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  bool small_ = false;                          // all_reduce, reduce_scatter, broadcast
  std::int64_t chunk_ = 1;                      // elements of a data frame
  std::int64_t missing_ = 0;                    // elements that data frames still have to bring
  std::vector<Inbox> inboxes_;                  // by chunk of the own block
  std::vector<std::array<std::byte, 8>> torn_;  // by rank: an element that came in two pieces
};

}  // namespace lockstep
