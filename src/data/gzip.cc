// SPDX-License-Identifier: Apache-2.0
#include "data/gzip.h"

#include <lockstep/base/check.h>

#include <zlib.h>

#include <limits>

namespace lockstep::data {
namespace {

struct Inflater {
  z_stream stream{};
  bool ready = inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK;  // 16: gzip framing only

  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
};

[[noreturn]] void fail(std::string_view file, std::size_t offset, std::string_view why) {
  throw DataLoss(message("gunzip", file, ": ", why, " at byte ", offset), SourceLocation{});
}

}  // namespace

std::string gunzip(std::span<const unsigned char> compressed, std::string_view file,
                   std::size_t limit) {
  Inflater inflater;
  ensure(inflater.ready, "gunzip", "zlib refused to start");
  ensure(compressed.size() <= std::numeric_limits<uInt>::max(), "gunzip", file, " is too large");
  z_stream& stream = inflater.stream;
  stream.next_in = const_cast<unsigned char*>(compressed.data());  // zlib only reads it
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string contents;
  char chunk[1 << 14];
  int status = Z_OK;
  while (status != Z_STREAM_END || stream.avail_in > 0) {
    if (status == Z_STREAM_END) inflateReset(&stream);  // another member follows
    stream.next_out = reinterpret_cast<unsigned char*>(chunk);
    stream.avail_out = sizeof chunk;
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t offset = compressed.size() - stream.avail_in;
    if (status == Z_BUF_ERROR) fail(file, offset, "the compressed data is cut short");
    if (status != Z_OK && status != Z_STREAM_END) fail(file, offset, "not valid gzip data");
    contents.append(chunk, sizeof chunk - stream.avail_out);
    if (contents.size() > limit) fail(file, offset, "more data than expected");
  }
  return contents;
}

}  // namespace lockstep::data
