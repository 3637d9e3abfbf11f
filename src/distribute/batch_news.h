// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/data/element.h>
#include <lockstep/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace lockstep {

// What a worker tells the others of its next batch: its rows and those of the global batch that they
// are dealt from, that its data has ended, or why it has failed; in the first step also what a batch
// looks like, for workers that have none.
class BatchNews {
 public:
  // `batch`: one replica's leaves, of which all of this worker have `rows` rows.
  static std::vector<std::byte> of(const data::Leaves& batch, std::int64_t rows,
                                   std::int64_t global_rows, bool first_step);
  static std::vector<std::byte> of_end();
  static std::vector<std::byte> of_failure(const std::exception_ptr& failure);
  explicit BatchNews(const std::vector<std::byte>& bytes);

  bool ended() const { return rows_ == kEnded; }
  bool failed() const { return rows_ == kFailed; }
  std::int64_t rows() const { return rows_; }
  std::int64_t global_rows() const { return global_rows_; }  // 0 when ended, failed or not dealt
  // Why it has failed.
  const std::string& text() const { return text_; }
  // Of the first step.
  data::ElementSpec spec() const;

 private:
  static constexpr std::int64_t kEnded = -1, kFailed = -2;
  static std::vector<std::byte> encode(std::int64_t rows, std::int64_t global_rows,
                                       const std::string& text);

  std::int64_t rows_ = 0, global_rows_ = 0;
  std::string text_;
};

}  // namespace lockstep
