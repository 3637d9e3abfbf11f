// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/distribute/verify.h>
#include <lockstep/tensor/rows.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::testing {

using Numbers = std::vector<double>;

// One way to run a step once.
struct Trial {
  int replicas = 1;
  ReplicaThreads threads = ReplicaThreads::one_at_a_time;
  RowRange rows;
  bool rows_reversed = false;
  int as_replica = 0;              // on one replica: whose random numbers it draws
  bool last_enters_first = false;  // replicas begin one after the other, the last one first
};

// What a range of numbers is, a variable for one.
struct Span {
  std::string name;
  std::size_t size = 0;
  double rounding = 0;  // of a number that is as large as 1
};

// What came of it.
struct Outcome {
  std::vector<Span> spans;      // the variables
  Numbers before, after;        // all variables' elements, one variable after the other
  std::vector<Numbers> losses;  // of each replica; none where the step returns nothing
  Numbers metric;               // empty without
  bool random = false;          // the step drew numbers from the strategy
  std::string apart;            // which variable differs between replicas, and where
  std::string error;            // what came out of the run
  bool missed = false;          // it says that replicas did not meet
};

// Runs a program in all the ways that are asked for, each with a strategy and a program of its own.
class Trials {
 public:
  Trials(const detail::MakeProgram& make, const std::vector<Tensor>& leaves,
         const VerifyOptions& options)
      : make_(make), leaves_(leaves), options_(options) {}

  // Throws what the step throws on one replica.
  Outcome run(const Trial& trial) const;

 private:
  Strategy strategy(const Trial& trial) const;
  std::vector<Tensor> rows(const Trial& trial) const;

  const detail::MakeProgram& make_;
  const std::vector<Tensor>& leaves_;
  const VerifyOptions& options_;
};

}  // namespace lockstep::testing
