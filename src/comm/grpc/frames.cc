// SPDX-License-Identifier: Apache-2.0
#include "comm/grpc/frames.h"

#include <lockstep/base/check.h>

namespace lockstep {
namespace {

constexpr std::uint8_t kForeign = 255;  // no lockstep::Error

template <class E>
std::exception_ptr make(std::string text, ErrorContext context) {
  return std::make_exception_ptr(E(std::move(text), SourceLocation(), std::move(context)));
}

std::exception_ptr make_error(ErrorKind kind, std::string text, ErrorContext context) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return make<InvalidArgument>(std::move(text), std::move(context));
    case ErrorKind::failed_precondition:
      return make<FailedPrecondition>(std::move(text), std::move(context));
    case ErrorKind::unimplemented:
      return make<Unimplemented>(std::move(text), std::move(context));
    case ErrorKind::unavailable:
      return make<Unavailable>(std::move(text), std::move(context));
    case ErrorKind::deadline_exceeded:
      return make<DeadlineExceeded>(std::move(text), std::move(context));
    case ErrorKind::resource_exhausted:
      return make<ResourceExhausted>(std::move(text), std::move(context));
    case ErrorKind::data_loss:
      return make<DataLoss>(std::move(text), std::move(context));
    case ErrorKind::internal:
      return make<InternalError>(std::move(text), std::move(context));
    case ErrorKind::peer_error:
      break;
  }
  return make<PeerError>(std::move(text), std::move(context));
}

void pack_foreign(Packer& packer, std::string_view text) {
  packer.put(kForeign);
  packer.put_text(text);
}

}  // namespace

void Packer::append(const void* data, std::size_t bytes) {
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + bytes);
  if (bytes > 0) std::memcpy(bytes_.data() + begin, data, bytes);
}

std::vector<std::byte> Packer::take() {
  const std::uint64_t bytes = bytes_.size() - sizeof(FrameHeader);
  std::memcpy(bytes_.data() + offsetof(FrameHeader, bytes), &bytes, sizeof bytes);
  return std::move(bytes_);
}

void Unpacker::read(void* to, std::size_t bytes) {
  if (bytes > message_.bytes())
    throw PeerError(message("GrpcGroup", "a message of another worker ends early: expected ", bytes,
                            " more bytes, got ", message_.bytes()));
  message_.read(to, bytes);
}

std::string Unpacker::get_text() {
  const auto bytes = get<std::uint64_t>();
  std::string text(std::min<std::uint64_t>(bytes, message_.bytes() + 1), '\0');
  read(text.data(), text.size());
  return text;
}

void pack_call(Packer& packer, const CollectiveCall& call, std::span<const std::int64_t> counts) {
  static_assert(std::is_trivially_copyable_v<CallName>);
  packer.put(call.kind);
  packer.put(call.channel);
  packer.put(call.op);
  packer.put(call.dtype);
  packer.put(call.root);
  packer.put(call.sequence);
  packer.put(call.count);
  packer.put(call.name);
  packer.put(static_cast<std::uint64_t>(call.uneven ? counts.size() : 0));
  if (call.uneven) packer.append(counts.data(), counts.size_bytes());
}

CollectiveCall unpack_call(Unpacker& unpacker, std::vector<std::int64_t>& counts) {
  CollectiveCall call;
  call.kind = unpacker.get<CollectiveKind>();
  call.channel = unpacker.get<Channel>();
  call.op = unpacker.get<ReduceOp>();
  call.dtype = unpacker.get<DType>();
  call.root = unpacker.get<std::int32_t>();
  call.sequence = unpacker.get<std::int64_t>();
  call.count = unpacker.get<std::int64_t>();
  call.name = unpacker.get<CallName>();
  const auto size = unpacker.get<std::uint64_t>();
  call.uneven = size > 0;
  counts.resize(std::min<std::uint64_t>(size, unpacker.left()));
  unpacker.read(counts.data(), counts.size() * sizeof(std::int64_t));
  return call;
}

void pack_error(Packer& packer, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    packer.put(static_cast<std::uint8_t>(e.kind()));
    packer.put_text(e.message());
    packer.put_text(e.context().peer);
    packer.put_text(e.context().collective);
    packer.put(e.context().replica.value_or(-1));
    packer.put(e.context().step.value_or(-1));
  } catch (const std::exception& e) {
    pack_foreign(packer, e.what());
  } catch (...) {
    pack_foreign(packer, "something that is no std::exception");
  }
}

std::exception_ptr unpack_error(Unpacker& unpacker, const std::string& peer) {
  const auto kind = unpacker.get<std::uint8_t>();
  std::string text = unpacker.get_text();
  ErrorContext context;
  context.peer = peer;
  if (kind == kForeign)
    return make<PeerError>(message("GrpcGroup", peer, " failed: ", text), std::move(context));
  if (std::string named = unpacker.get_text(); !named.empty()) context.peer = std::move(named);
  context.collective = unpacker.get_text();
  if (const int replica = unpacker.get<int>(); replica >= 0) context.replica = replica;
  if (const auto step = unpacker.get<std::int64_t>(); step >= 0) context.step = step;
  return make_error(static_cast<ErrorKind>(kind), std::move(text), std::move(context));
}

}  // namespace lockstep
