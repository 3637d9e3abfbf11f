// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/elementwise.cuh"

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.cuh"

namespace lockstep::cuda {
namespace {

template <class F, class S>
constexpr bool kOffered = F::template supports<Compute<S>>;

// f(Functor{}) with the functor of an op.
template <class Visit>
void visit(UnaryOp op, Visit&& f) {
  switch (op) {
#define LOCKSTEP_CASE(name, Functor) \
  case UnaryOp::name:                \
    return f(Functor{});
    LOCKSTEP_UNARY_OPS(LOCKSTEP_CASE)
#undef LOCKSTEP_CASE
    case UnaryOp::count:
      break;
  }
}
template <class Visit>
void visit(BinaryOp op, Visit&& f) {
  switch (op) {
#define LOCKSTEP_CASE(name, Functor) \
  case BinaryOp::name:               \
    return f(Functor{});
    LOCKSTEP_BINARY_OPS(LOCKSTEP_CASE)
#undef LOCKSTEP_CASE
    case BinaryOp::count:
      break;
  }
}
template <class Visit>
void visit(CompareOp op, Visit&& f) {
  switch (op) {
#define LOCKSTEP_CASE(name, Functor) \
  case CompareOp::name:              \
    return f(Functor{});
    LOCKSTEP_COMPARE_OPS(LOCKSTEP_CASE)
#undef LOCKSTEP_CASE
    case CompareOp::count:
      break;
  }
}
template <class Visit>
void visit(PredicateOp op, Visit&& f) {
  switch (op) {
#define LOCKSTEP_CASE(name, Functor) \
  case PredicateOp::name:            \
    return f(Functor{});
    LOCKSTEP_PREDICATE_OPS(LOCKSTEP_CASE)
#undef LOCKSTEP_CASE
    case PredicateOp::count:
      break;
  }
}

}  // namespace

void unary(UnaryOp op, DType dtype, const void* x, void* y, std::int64_t n, Device device) {
  if (n == 0) return;
  visit(op, [&]<class F>(F) {
    visit_numeric(dtype, [&]<class S>(S) {
      if constexpr (kOffered<F, S>)
        run(unary_kernel<F, S>, device, blocks_for(n), in<S>(x), out<S>(y), n);
    });
  });
}

void unary_gradient(UnaryOp op, DType dtype, const void* dy, const void* kept, void* dx,
                    std::int64_t n, Device device) {
  if (n == 0) return;
  visit(op, [&]<class F>(F) {
    visit_floating(dtype, [&]<class S>(S) {
      if constexpr (requires { F::kKeeps; })
        run(unary_gradient_kernel<F, S>, device, blocks_for(n), in<S>(dy), in<S>(kept), out<S>(dx),
            n);
    });
  });
}

void binary(BinaryOp op, DType dtype, const void* a, const void* b, void* y,
            const Broadcast<2>& plan, std::int64_t n, Device device) {
  if (n == 0) return;
  visit(op, [&]<class F>(F) {
    visit_numeric(dtype, [&]<class S>(S) {
      if constexpr (kOffered<F, S>)
        run(binary_kernel<F, S, S>, device, blocks_for(n), in<S>(a), in<S>(b), out<S>(y), plan, n);
    });
  });
}

void compare(CompareOp op, DType dtype, const void* a, const void* b, bool* y,
             const Broadcast<2>& plan, std::int64_t n, Device device) {
  if (n == 0) return;
  visit(op, [&]<class F>(F) {
    visit_numeric(dtype, [&]<class S>(S) {
      run(binary_kernel<F, S, bool>, device, blocks_for(n), in<S>(a), in<S>(b), y, plan, n);
    });
  });
}

void select(std::size_t size, const void* condition, const void* a, const void* b, void* y,
            const Broadcast<3>& plan, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_size(size, [&]<class U>(U) {
    run(select_kernel<U>, device, blocks_for(n), in<bool>(condition), in<U>(a), in<U>(b), out<U>(y),
        plan, n);
  });
}

void predicate(PredicateOp op, DType dtype, const void* x, bool* y, std::int64_t n, Device device) {
  if (n == 0) return;
  visit(op, [&]<class F>(F) {
    visit_numeric(dtype, [&]<class S>(S) {
      run(predicate_kernel<F, S>, device, blocks_for(n), in<S>(x), y, n);
    });
  });
}

void cast(DType from, DType to, const void* x, void* y, std::int64_t n, Device device) {
  if (n == 0) return;
  visit_numeric(from, [&]<class From>(From) {
    const auto convert = [&]<class To>(To) {
      run(cast_kernel<To, From>, device, blocks_for(n), in<From>(x), out<To>(y), n);
    };
    if (to == DType::boolean)
      convert(bool{});
    else
      visit_numeric(to, convert);
  });
}

}  // namespace lockstep::cuda
