// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

// One process of a cluster: its job ("chief", "worker", "evaluator") and its number there.
struct LOCKSTEP_EXPORT Task {
  std::string type;
  int index = 0;

  std::string to_string() const;  // "worker 1"
  friend bool operator==(const Task&, const Task&) = default;
};

// The addresses of a cluster's processes by job, as in TensorFlow: an immutable value, always
// valid. An address is host:port, where the host is a name, an IPv4 address or an IPv6 address in
// brackets, and the port 1 to 65535. Jobs may have any name here, of letters, digits and -_. alone;
// a ClusterView says which of them train.
class LOCKSTEP_EXPORT ClusterSpec {
 public:
  using Addresses = std::map<int, std::string>;  // by task index
  using Jobs = std::map<std::string, Addresses, std::less<>>;

  // No cluster: a process that trains by itself.
  ClusterSpec() = default;
  // Tasks are numbered from 0 in the order of their addresses:
  //   ClusterSpec({{"chief", {"host0:2222"}}, {"worker", {"host1:2222", "[fe80::2]:2222"}}})
  // Throws InvalidArgument for a job without addresses or with another name, an address that does
  // not parse, and one that two tasks share.
  explicit ClusterSpec(
      std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs,
      SourceLocation at = SourceLocation::current());
  explicit ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs,
                       SourceLocation at = SourceLocation::current());
  // Tasks with their numbers, which may leave holes. Throws as above, and for a negative number.
  static ClusterSpec sparse(Jobs jobs, SourceLocation at = SourceLocation::current());

  bool empty() const { return jobs_.empty(); }
  const Jobs& jobs() const { return jobs_; }
  // How many addresses a job lists; 0 for a job that is not there.
  std::size_t num_tasks(std::string_view job) const;
  // Throws InvalidArgument for a task that is not listed, with those that are.
  const std::string& task_address(const Task& task,
                                  SourceLocation at = SourceLocation::current()) const;

  // One line, the same for equal specs: "chief: host0:2222; worker: host1:2222, [fe80::2]:2222".
  std::string to_string() const;
  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

 private:
  Jobs jobs_;
};

}  // namespace lockstep
