// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/base/dtype.h>
#include <lockstep/device/buffer.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// oneDNN's primitives as onednn_*.cc use them: described alike for versions 2 and 3, compiled once per
// thread and problem, called on bare pointers.
namespace lockstep::onednn {

using dnnl::memory;
using Dims = memory::dims;

dnnl::engine& engine();

// One compiled primitive with the memory objects that it is called with. A default-constructed one
// stands for a primitive that oneDNN lacks.
class Prepared {
 public:
  using Arguments = std::initializer_list<std::pair<int, memory::desc>>;

  Prepared() = default;
  template <class Description>
  Prepared(const dnnl::primitive& primitive, const Description& description, Arguments arguments)
      : primitive_(primitive), scratch_bytes_(description.scratchpad_desc().get_size()) {
    for (const auto& [name, desc] : arguments) add(name, desc);
    if (scratch_bytes_) add(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  }

  explicit operator bool() const { return count_ > 0; }

  // `data` in the order of the constructor's arguments; scratch memory comes from the pool of `device`.
  void run(Device device, std::initializer_list<const void*> data);

 private:
  void add(int name, const memory::desc& desc);
  void point(int argument, void* data);

  dnnl::primitive primitive_;
  std::size_t scratch_bytes_ = 0;
  std::vector<memory> owners_;
  std::array<dnnl_exec_arg_t, 6> arguments_{};
  int count_ = 0;
};

// What is kept per problem: the primitive, and for convolutions the conversion of weights between
// HWIO and the format that the primitive chose (absent where that is HWIO itself).
struct Entry {
  Prepared primitive;
  Prepared reorder;
  std::size_t reordered_bytes = 0;
};

enum class Kind : std::int64_t { gemm, forward, input_gradient, weight_gradient };

// Kind, dtype, flags, number of threads and extents; the rest is zero.
using Key = std::array<std::int64_t, 32>;

// Throws what a failure of oneDNN is to the user: ResourceExhausted or InternalError, naming `op`
// and the problem that it was given.
[[noreturn]] void rethrow(const dnnl::error& error, const char* op, const std::string& problem);

// Calls f(); what oneDNN throws in it is rethrown, with describe() as the problem.
template <class Describe, class F>
auto explained(const char* op, Describe&& describe, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    rethrow(error, op, describe());
  }
}

// The thread's entry for `key`, made at its first use; one without a primitive where `make` throws
// dnnl_unimplemented. Valid until the thread's next call. Throws dnnl::error, as Prepared::run does.
Entry& find(const Key& key, const std::function<Entry()>& make);

// Whether oneDNN may have kernels for `dtype`, and its name for it.
bool has(DType dtype);
memory::data_type type_of(DType dtype);

// Scratch memory from us; after the primitive an addition to what the result holds, or a relu.
dnnl::primitive_attr attributes(bool relu, bool accumulate = false);

// The description of a primitive, the step in which versions 2 and 3 differ.
template <class Primitive, class... Arguments>
auto describe(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., attributes);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...), attributes,
                                            engine());
#endif
}
// The same for the gradient of a primitive, which is chosen to go with `forward`.
template <class Primitive, class Forward, class... Arguments>
auto describe_gradient(const Forward& forward, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., forward, attributes(false));
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            attributes(false), engine(), forward);
#endif
}

// oneDNN's reference implementations are loops without vectors; ours are better.
template <class Description>
void require_fast(const Description& description) {
  if (std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos)
    throw dnnl::error(dnnl_unimplemented, "only a reference implementation");
}

}  // namespace lockstep::onednn
