// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/cluster/cluster_spec.h>

#include <optional>
#include <string>

namespace lockstep {

// Finds out of which cluster this process is part. Resolvers read and check at construction and are
// immutable afterwards, so that every answer agrees with every other, from any thread.
class LOCKSTEP_EXPORT ClusterResolver {
 public:
  virtual ~ClusterResolver();
  // Empty when there is no cluster: this process trains by itself.
  virtual ClusterSpec cluster_spec() const = 0;
  // This process; nothing when the source does not say.
  virtual std::optional<Task> task() const = 0;
  // What the answers come from, for logs and errors: "TF_CONFIG".
  virtual std::string source() const = 0;
  // Scheme of master(), without "://"; empty for none.
  virtual std::string rpc_layer() const { return ""; }
  // TensorFlow's name for the address of the own task, with the scheme before it; empty for a
  // cluster of one task or none. Throws InvalidArgument for a task that is not listed.
  virtual std::string master(SourceLocation at = SourceLocation::current()) const;

 protected:
  ClusterResolver() = default;
  ClusterResolver(const ClusterResolver&) = default;
  ClusterResolver& operator=(const ClusterResolver&) = default;
};

// What the program says:
//   const ClusterSpec spec({{"worker", {"host0:2222", "host1:2222"}}});
//   SimpleClusterResolver resolver(spec, Task{"worker", 1});
class LOCKSTEP_EXPORT SimpleClusterResolver : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec spec, std::optional<Task> task = {},
                                 std::string rpc_layer = "");

  ClusterSpec cluster_spec() const override { return spec_; }
  std::optional<Task> task() const override { return task_; }
  std::string source() const override { return "SimpleClusterResolver"; }
  std::string rpc_layer() const override { return rpc_layer_; }

 private:
  ClusterSpec spec_;
  std::optional<Task> task_;
  std::string rpc_layer_;
};

}  // namespace lockstep
