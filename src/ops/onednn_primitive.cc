// SPDX-License-Identifier: Apache-2.0
#if LOCKSTEP_WITH_ONEDNN

#include "ops/onednn_primitive.h"

#include <lockstep/base/check.h>

#include <bit>
#include <unordered_map>

#include "ops/isa.h"

namespace lockstep::onednn {

// Never destroyed: primitives of threads that end after main refer to it.
dnnl::engine& engine() {
  static dnnl::engine* const cpu = [] {
    // What is asked of our own kernels holds for oneDNN's. It accepts that before its first use
    // only.
    if (isa() == Isa::v2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
    if (isa() == Isa::v3) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *cpu;
}

namespace {

dnnl_stream_t stream() {
  thread_local dnnl::stream own(engine());
  return own.get();
}

constexpr std::size_t kMaxKept = 512;  // entries per thread

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::int64_t word : key)
      hash = (std::rotl(hash, 5) ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

}  // namespace

void rethrow(const dnnl::error& error, const char* op, const std::string& problem) {
  if (error.status == dnnl_out_of_memory)
    throw ResourceExhausted(message(op, "oneDNN ran out of memory for ", problem),
                            SourceLocation{});
  throw InternalError(message(op, "oneDNN failed for ", problem, ": ", error.what(), " (status ",
                              static_cast<int>(error.status), ")"));
}

void Prepared::run(Device device, std::initializer_list<const void*> data) {
  int i = 0;
  for (const void* pointer : data) point(i++, const_cast<void*>(pointer));
  Buffer scratch;
  if (scratch_bytes_) {
    scratch = Buffer::allocate(device, scratch_bytes_);
    point(i++, scratch.data());
  }
  ensure(i == count_, "oneDNN", "expected ", count_, " arguments, got ", i);
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream(), count_, arguments_.data());
  if (status != dnnl_success) [[unlikely]]
    throw dnnl::error(status, "could not execute a primitive");
}

void Prepared::add(int name, const memory::desc& desc) {
  owners_.push_back(memory(desc, engine(), DNNL_MEMORY_NONE));
  arguments_[static_cast<std::size_t>(count_++)] = {name, owners_.back().get()};
}

void Prepared::point(int argument, void* data) {
  dnnl_memory_set_data_handle(arguments_[static_cast<std::size_t>(argument)].memory, data);
}

Entry& find(const Key& key, const std::function<Entry()>& make) {
  thread_local std::unordered_map<Key, Entry, KeyHash> kept;
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  Entry entry;
  try {
    entry = make();
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
  }
  if (kept.size() >= kMaxKept) kept.clear();
  return kept.emplace(key, std::move(entry)).first->second;
}

bool has(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }
memory::data_type type_of(DType dtype) {
  if (dtype == DType::bf16) return memory::data_type::bf16;
  return dtype == DType::f16 ? memory::data_type::f16 : memory::data_type::f32;
}

dnnl::primitive_attr attributes(bool relu, bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post_ops;
  if (accumulate) post_ops.append_sum();
  if (relu) {
#if DNNL_VERSION_MAJOR >= 3
    post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
    post_ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  }
  if (relu || accumulate) attributes.set_post_ops(post_ops);
  return attributes;
}

}  // namespace lockstep::onednn

#endif
