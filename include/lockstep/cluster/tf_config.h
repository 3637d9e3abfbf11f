// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/export.h>
#include <lockstep/base/source_location.h>
#include <lockstep/cluster/cluster_spec.h>
#include <lockstep/cluster/resolver.h>

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// What TensorFlow's TF_CONFIG says, a JSON object such as
//   {"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 1}}
struct TFConfig {
  ClusterSpec cluster;
  std::optional<Task> task;
  std::string rpc_layer;       // empty when not given
  std::string session_master;  // empty when not given
};

// Reads a TF_CONFIG; blank text is an empty one. All keys are optional and other keys are ignored.
// A job may be a list of addresses or an object from task index to address ({"0": "host0:2222"}); a
// task's type may be a number and its index a string, as in TensorFlow. Throws InvalidArgument for
// text that is not JSON (with the position), for a value of another type, for half a task, and as
// ClusterSpec does; never anything else, whatever the text.
LOCKSTEP_EXPORT TFConfig parse_tf_config(std::string_view text,
                                         SourceLocation at = SourceLocation::current());

// The TF_CONFIG for `task` of a cluster, in one line; parse_tf_config gives both back.
LOCKSTEP_EXPORT std::string to_tf_config(const ClusterSpec& cluster, const Task& task);

// What the program says takes precedence over the environment.
struct TFConfigOptions {
  std::optional<Task> task = {};
  std::optional<std::string> rpc_layer = {};
};

// What the environment variable TF_CONFIG says when the resolver is made; no variable: no cluster.
// Logs what it read at level info, and a warning when a task is named but no cluster.
class LOCKSTEP_EXPORT TFConfigClusterResolver : public ClusterResolver {
 public:
  // Throws as parse_tf_config.
  explicit TFConfigClusterResolver(TFConfigOptions options = {},
                                   SourceLocation at = SourceLocation::current());

  ClusterSpec cluster_spec() const override { return config_.cluster; }
  std::optional<Task> task() const override { return config_.task; }
  std::string source() const override { return "TF_CONFIG"; }
  std::string rpc_layer() const override { return config_.rpc_layer; }
  // session_master where TF_CONFIG names one.
  std::string master(SourceLocation at = SourceLocation::current()) const override;

 private:
  TFConfig config_;
};

}  // namespace lockstep
