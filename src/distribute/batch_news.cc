// SPDX-License-Identifier: Apache-2.0
#include "distribute/batch_news.h"

#include <iterator>
#include <sstream>
#include <utility>

namespace lockstep {

std::vector<std::byte> BatchNews::of(const data::Leaves& batch, std::int64_t rows,
                                     std::int64_t global_rows, bool first_step) {
  std::string text;
  for (std::size_t i = 0; first_step && i < batch.size(); ++i) {
    text += std::to_string(static_cast<int>(batch[i].dtype()));
    for (const std::int64_t dim : batch[i].shape().dims()) text += ' ' + std::to_string(dim);
    text += '\n';
  }
  return encode(rows, global_rows, text);
}

std::vector<std::byte> BatchNews::of_end() { return encode(kEnded, 0, ""); }

std::vector<std::byte> BatchNews::of_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return encode(kFailed, 0, error.what());
  } catch (...) {
    return encode(kFailed, 0, "something that is no std::exception");
  }
}

BatchNews::BatchNews(const std::vector<std::byte>& bytes) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  text >> rows_ >> global_rows_;
  text.get();  // the end of that line
  text_.assign(std::istreambuf_iterator<char>(text), {});
}

data::ElementSpec BatchNews::spec() const {
  data::ElementSpec spec;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    int dtype = 0;
    numbers >> dtype;
    data::LeafSpec leaf{static_cast<DType>(dtype), {}};
    for (std::int64_t dim = 0; numbers >> dim;) leaf.dims.push_back(dim);
    spec.push_back(std::move(leaf));
  }
  return spec;
}

std::vector<std::byte> BatchNews::encode(std::int64_t rows, std::int64_t global_rows,
                                         const std::string& text) {
  const std::string all = std::to_string(rows) + ' ' + std::to_string(global_rows) + '\n' + text;
  const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
  return {bytes, bytes + all.size()};
}

}  // namespace lockstep
