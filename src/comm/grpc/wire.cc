// SPDX-License-Identifier: Apache-2.0
#include "comm/grpc/wire.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

void Message::read(void* to, std::size_t count) {
  auto* target = static_cast<std::byte*>(to);
  bytes_ -= count;
  while (count > 0) {
    auto& piece = pieces_[first_];
    const std::size_t now = std::min(count, piece.size());
    if (target) {
      std::memcpy(target, piece.data(), now);
      target += now;
    }
    count -= now;
    piece = piece.subspan(now);
    if (piece.empty()) ++first_;
  }
}

}  // namespace lockstep
