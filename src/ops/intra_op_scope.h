// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// Makes OpenMP regions that the calling thread enters use intra_op_threads() threads while it
// lives, in libraries (oneDNN) as in our own loops, and gives the user's setting back afterwards.
class [[nodiscard]] IntraOpScope {
 public:
  IntraOpScope() noexcept;
  ~IntraOpScope();
  IntraOpScope(const IntraOpScope&) = delete;
  IntraOpScope& operator=(const IntraOpScope&) = delete;

 private:
  int previous_;
};

}  // namespace lockstep
