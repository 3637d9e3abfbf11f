// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace lockstep {

// Sums of products by Einstein's convention, as TensorFlow's: einsum("bij,bjk->bik", {a, b}) is a
// product of matrices. `equation` has for each operand a letter per axis, and after "->" those of the
// result; a letter that is not there is summed over. Without "->" the result has the letters that
// occur once, in alphabetical order. A letter twice in one operand takes the diagonal. "..." stands for
// all axes that have no letter, which broadcast as NumPy's and which the result has, too, where it says
// "...", or first. Blanks are skipped.
//
// Composed of transpose, reshape, sum and matmul, the operands from the left to the right, with their
// gradients. dtypes: floating, i32, i64, the same for all. Throws InvalidArgument, naming the equation
// and the shapes, for an equation that cannot be read, another number of operands, ranks that do not
// fit, a letter with two extents, and a result with a letter twice or one that no operand has, or
// without "..." where an operand has it.
LOCKSTEP_EXPORT Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
                              SourceLocation at = SourceLocation::current());

}  // namespace lockstep
