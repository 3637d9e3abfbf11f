// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <lockstep/base/check.h>
#include <lockstep/tensor/factory.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "data/file.h"
#include "data/gzip.h"

namespace lockstep::data {
namespace {

constexpr const char* kOp = "data::read_idx";

// What a file says, and where.
struct Bytes {
  std::span<const unsigned char> all;
  std::string_view file;
  SourceLocation at;

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw DataLoss(message(kOp, file, ": ", parts...), at);
  }
};

// The N bytes of one big-endian number at `bytes`, as another type of that size.
template <class T>
T number_at(const unsigned char* bytes) {
  unsigned char swapped[sizeof(T)];
  std::copy_n(bytes, sizeof(T), swapped);
  if constexpr (std::endian::native == std::endian::little)
    std::reverse(swapped, std::end(swapped));
  T value;
  std::memcpy(&value, swapped, sizeof(T));
  return value;
}

// Elements that are `Stored` in the file, as a tensor of T.
template <class Stored, class T = Stored>
Tensor elements(const Shape& shape, std::span<const unsigned char> stored) {
  return make_tensor<T>(shape, [&](std::span<T> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(number_at<Stored>(stored.data() + i * sizeof(Stored)));
  });
}

struct ElementType {
  int code;
  std::int64_t size;
  const char* name;
  Tensor (*read)(const Shape& shape, std::span<const unsigned char> stored);
};
constexpr ElementType kTypes[] = {
    {0x08, 1, "unsigned bytes", elements<std::uint8_t>},
    {0x09, 1, "signed bytes", elements<std::int8_t, std::int32_t>},
    {0x0B, 2, "integers of two bytes", elements<std::int16_t, std::int32_t>},
    {0x0C, 4, "integers of four bytes", elements<std::int32_t>},
    {0x0D, 4, "f32", elements<float>},
    {0x0E, 8, "f64", elements<double>},
};

const ElementType& element_type(const Bytes& bytes) {
  if (bytes.all.size() < 4)
    bytes.fail("cut short: an IDX file begins with four bytes, got ", bytes.all.size());
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const ElementType& t) { return t.code == bytes.all[2]; });
  if (bytes.all[0] != 0 || bytes.all[1] != 0 || type == std::end(kTypes))
    bytes.fail(
        "no IDX file: expected to begin with the bytes 0, 0 and a type (8, 9, 11 to 14), got ",
        int{bytes.all[0]}, ", ", int{bytes.all[1]}, " and ", int{bytes.all[2]});
  return *type;
}

Shape shape_of(const Bytes& bytes, std::size_t rank) {
  if (rank > Shape::kMaxRank)
    throw Unimplemented(message(kOp, bytes.file, ": tensors have at most ", Shape::kMaxRank,
                                " axes, the file has ", rank),
                        bytes.at);
  if (bytes.all.size() < 4 + 4 * rank)
    bytes.fail("cut short: ", rank, " axes need ", 4 + 4 * rank, " bytes, got ", bytes.all.size());
  std::vector<std::int64_t> dims(rank);
  double elements = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = number_at<std::uint32_t>(bytes.all.data() + 4 + 4 * i);
    elements *= static_cast<double>(std::max<std::int64_t>(dims[i], 1));
  }
  if (elements > 1e15) bytes.fail("no IDX file: its shape has ", elements, " elements");
  return Shape(dims);
}

Tensor parse_idx(std::span<const unsigned char> contents, std::string_view file,
                 SourceLocation at) {
  const Bytes bytes{contents, file, at};
  const ElementType& type = element_type(bytes);
  const std::size_t rank = contents[3], header = 4 + 4 * rank;
  const Shape shape = shape_of(bytes, rank);
  const auto stored = std::ssize(contents) - static_cast<std::int64_t>(header);
  if (stored % type.size != 0 || stored / type.size != shape.num_elements())
    bytes.fail(stored / type.size < shape.num_elements() ? "cut short" : "too long", ": ", shape,
               " ", type.name, " are ", shape.num_elements(), " of ", type.size,
               " bytes each, but after byte ", header, " there are ", stored, " bytes");
  return type.read(shape, contents.subspan(header));
}

}  // namespace

Tensor read_idx(const std::string& file, std::string_view op, std::string_view advice,
                SourceLocation at) {
  const std::vector<unsigned char> bytes = read_file(file, op, advice, at);
  if (bytes.size() < 2 || bytes[0] != 0x1F || bytes[1] != 0x8B) return parse_idx(bytes, file, at);
  const std::string contents = gunzip(bytes, file, std::numeric_limits<std::size_t>::max());
  return parse_idx({reinterpret_cast<const unsigned char*>(contents.data()), contents.size()}, file,
                   at);
}

Tensor read_idx(const std::string& file, SourceLocation at) { return read_idx(file, kOp, "", at); }

}  // namespace lockstep::data
