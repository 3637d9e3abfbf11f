// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// How the values of several replicas become one, element by element, as TensorFlow's ReduceOp:
// `sum` adds them; `mean` divides that sum by the number of replicas, whatever each of them holds.
enum class ReduceOp : std::uint8_t { sum, mean };

// "sum" or "mean".
constexpr std::string_view name_of(ReduceOp op) { return op == ReduceOp::sum ? "sum" : "mean"; }

}  // namespace lockstep
