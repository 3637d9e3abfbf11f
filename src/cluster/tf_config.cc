// SPDX-License-Identifier: Apache-2.0
#include <lockstep/base/check.h>
#include <lockstep/base/log.h>
#include <lockstep/cluster/cluster_view.h>
#include <lockstep/cluster/tf_config.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/in_quotes.h"
#include "cluster/names.h"

namespace lockstep {
namespace {

using cluster::in_quotes;
using Json = nlohmann::json;

constexpr std::string_view kCall = "parse_tf_config";
constexpr std::string_view kExample =
    R"(expected {"cluster": {"worker": ["host0:2222", "host1:2222"]}, )"
    R"("task": {"type": "worker", "index": 0}})";

template <class... Parts>
void check(bool ok, SourceLocation at, const Parts&... parts) {
  require(ok, at, kCall, "TF_CONFIG: ", parts...);
}

// The value as it stands in the text, cut to a length that can be read.
std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return value.dump();
}

// What the parser says, with the position, without its own name, and of the text what can be shown.
std::string reason_of(const Json::exception& error) {
  constexpr std::size_t kLongest = 200;
  const std::string_view text = error.what();
  const std::size_t bracket = text.find("] ");
  std::string reason(text.substr(bracket == text.npos ? 0 : bracket + 2));
  for (char& c : reason)
    if (c < ' ' || c > '~') c = '?';
  if (reason.size() > kLongest) reason.replace(kLongest, reason.npos, "...");
  return reason;
}

Json parse_json(std::string_view text, SourceLocation at) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        message(kCall, "TF_CONFIG is not JSON: ", reason_of(error), "; ", kExample), at);
  }
}

// The number in a key or value that TensorFlow would pass to int(): digits only.
std::optional<int> parse_index(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
    return std::nullopt;
  return value;
}
std::optional<int> to_index(const Json& value) {
  if (value.is_string()) return parse_index(value.get_ref<const std::string&>());
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(number);
}

std::string read_address(const Json& value, std::string_view job, SourceLocation at) {
  check(value.is_string(), at, "job ", in_quotes(job), " has ", shown(value),
        " for an address; expected text such as \"host0:2222\"");
  return value.get<std::string>();
}

ClusterSpec::Addresses read_job(std::string_view job, const Json& value, SourceLocation at) {
  check(value.is_array() || value.is_object(), at, "job ", in_quotes(job), " is ", shown(value),
        "; expected a list of addresses, or an object from task index to address");
  ClusterSpec::Addresses addresses;
  if (value.is_array())
    for (const Json& address : value)
      addresses.emplace(static_cast<int>(addresses.size()), read_address(address, job, at));
  else
    for (const auto& [key, address] : value.items()) {
      const std::optional<int> index = parse_index(key);
      check(index.has_value(), at, "job ", in_quotes(job), " has a task ", in_quotes(key),
            "; expected its index, a number from 0");
      const bool is_new = addresses.emplace(*index, read_address(address, job, at)).second;
      check(is_new, at, "job ", in_quotes(job), " lists task ", *index, " twice");
    }
  return addresses;
}

ClusterSpec read_cluster(const Json& value, SourceLocation at) {
  check(value.is_object(), at, "\"cluster\" is ", shown(value),
        "; expected an object from job to addresses, as in ", kExample);
  ClusterSpec::Jobs jobs;
  for (const auto& [job, addresses] : value.items())
    jobs.emplace(job, read_job(job, addresses, at));
  return ClusterSpec::sparse(std::move(jobs), at);
}

// The value of a key, null where there is none: TensorFlow takes one for the other. By reference:
// copies of deeply nested values would exhaust the stack.
const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::optional<Task> read_task(const Json& value, SourceLocation at) {
  check(value.is_object(), at, "\"task\" is ", shown(value),
        "; expected {\"type\": \"worker\", \"index\": 0}");
  const Json &type = member(value, "type"), &index = member(value, "index");
  if (type.is_null() && index.is_null()) return std::nullopt;
  check(!type.is_null() && !index.is_null(), at, "\"task\" has no ",
        type.is_null() ? "type" : "index",
        "; expected both, as in {\"type\": \"worker\", \"index\": 0}");
  Task task;
  if (type.is_string()) task.type = type.get<std::string>();
  if (type.is_number_integer()) task.type = type.dump();
  check(cluster::is_job_name(task.type), at, "the task's type is ", shown(type),
        "; expected \"chief\", \"worker\" or \"evaluator\"");
  const std::optional<int> number = to_index(index);
  check(number.has_value(), at, "the task's index is ", shown(index),
        "; expected a whole number from 0");
  task.index = *number;
  return task;
}

std::string read_text(const Json& config, const char* key, SourceLocation at) {
  const Json& value = member(config, key);
  check(value.is_null() || value.is_string(), at, in_quotes(key), " is ", shown(value),
        "; expected text");
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

TFConfig parse_tf_config(std::string_view text, SourceLocation at) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return {};
  const Json config = parse_json(text, at);
  check(config.is_object(), at, "it is ", shown(config), "; ", kExample);
  TFConfig result;
  if (const auto found = config.find("cluster"); found != config.end())
    result.cluster = read_cluster(*found, at);
  if (const auto found = config.find("task"); found != config.end())
    result.task = read_task(*found, at);
  result.rpc_layer = read_text(config, "rpc_layer", at);
  result.session_master = read_text(config, "session_master", at);
  return result;
}

std::string to_tf_config(const ClusterSpec& cluster, const Task& task) {
  Json jobs = Json::object();
  for (const auto& [job, addresses] : cluster.jobs()) {
    const bool dense = addresses.rbegin()->first + 1 == static_cast<int>(addresses.size());
    for (const auto& [index, address] : addresses)
      if (dense)
        jobs[job].push_back(address);
      else
        jobs[job][std::to_string(index)] = address;
  }
  const Json config = {{"cluster", jobs}, {"task", {{"type", task.type}, {"index", task.index}}}};
  return config.dump();
}

TFConfigClusterResolver::TFConfigClusterResolver(TFConfigOptions options, SourceLocation at) {
  const char* text = std::getenv("TF_CONFIG");
  config_ = parse_tf_config(text ? text : "", at);
  if (options.task) config_.task = std::move(options.task);
  if (options.rpc_layer) config_.rpc_layer = std::move(*options.rpc_layer);
  const std::string own = config_.task ? "this process is " + config_.task->to_string() : "no task";
  if (config_.cluster.empty() && config_.task)
    logging::warning("TF_CONFIG: " + own + ", but there is no cluster: it trains by itself");
  else
    logging::info("TF_CONFIG: " + own + "; " +
                  (config_.cluster.empty() ? "no cluster" : config_.cluster.to_string()));
}

std::string TFConfigClusterResolver::master(SourceLocation at) const {
  return config_.session_master.empty() ? ClusterResolver::master(at) : config_.session_master;
}

}  // namespace lockstep
