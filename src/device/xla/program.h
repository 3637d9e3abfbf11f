// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/xla/trace.h"

namespace lockstep::xla {

// Executes what one step traced on every replica, as one program with one launch. Programs are
// compiled once and known by their text. A number in it is a constant until it is seen to change;
// then the program is compiled once more, with the number as an argument. Used by one thread.
class Programs {
 public:
  Programs(const Client& client, int num_replicas) : client_(client), num_replicas_(num_replicas) {}

  // Runs the program of traces[i] on device i of the client and completes the traces. Throws
  // InvalidArgument when the replicas traced different programs; whatever it throws, the traces are
  // for the caller to abandon.
  void execute(std::span<const std::unique_ptr<Trace>> traces);

  std::int64_t compilations() const { return compilations_; }
  // The text of the program compiled last, and the bytes that donation saved it per replica.
  const std::string& text() const { return text_; }
  std::int64_t alias_bytes() const { return alias_bytes_; }

 private:
  using Outputs = std::vector<Trace::Output>;
  struct Program {
    std::vector<Trace::Argument> literals_of;  // unused entries but for literals
    std::vector<bool> varies;                  // by argument: a literal that is passed
    std::unique_ptr<Executable> executable;
  };

  void check_alike(std::span<const std::unique_ptr<Trace>> traces,
                   std::span<const Outputs> outputs) const;
  std::vector<int> aliases(std::span<const std::unique_ptr<Trace>> traces,
                           const Outputs& outputs) const;
  Program& compiled(std::span<const std::unique_ptr<Trace>> traces, const Outputs& outputs,
                    const std::vector<int>& aliases);
  std::string module_text(const Trace& trace, const Outputs& outputs,
                          const std::vector<int>& aliases, const std::vector<bool>& varies) const;

  const Client& client_;
  const int num_replicas_;
  std::map<std::string, Program> programs_;
  std::int64_t compilations_ = 0;
  std::string text_;
  std::int64_t alias_bytes_ = 0;
};

}  // namespace lockstep::xla
