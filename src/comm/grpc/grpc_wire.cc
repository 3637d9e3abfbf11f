// SPDX-License-Identifier: Apache-2.0
// Streams of raw bytes over gRPC's generic service: the one file that knows gRPC. One thread takes
// every event from one completion queue. Each stream has at most one read and one write under way.
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <lockstep/base/check.h>
#include <lockstep/base/thread.h>
#include <lockstep/telemetry/telemetry.h>

#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "comm/grpc/grpc_stream.h"
#include "comm/grpc/listen.h"

namespace lockstep {
namespace {

constexpr char kMethod[] = "/lockstep.Ranks/Stream";
constexpr int kLookahead = 8 << 20;  // bytes a receiver accepts ahead of its reads
constexpr int kReadChunk = 4 << 20;

class GrpcWire final : public Wire {
 public:
  GrpcWire(WireOptions options, WireEvents& events)
      : options_(std::move(options)), events_(events) {
    check_free(options_.listen_address);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1).SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookahead);
    builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunk);
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadChunk);
    builder.RegisterAsyncGenericService(&service_);
    int port = 0;
    builder.AddListeningPort(options_.listen_address, server_credentials(), &port);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0) throw_not_bound(options_);
    accept_next();
    alarm_.Set(queue_.get(), next_tick(), &tick_);
    thread_ = std::thread([this] { serve(); });
  }

  ~GrpcWire() override {
    {
      const std::lock_guard lock(alarm_mutex_);
      stopping_.store(true);
      alarm_.Cancel();
    }
    quiet_.get_future().wait();  // from here on the thread starts no operation
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, stream] : streams_) cancel(*stream);
    }
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    thread_.join();
    for (const auto& [id, stream] : streams_) drop(stream->urgent), drop(stream->bulk);
  }

  StreamId open(const std::string& address) override {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookahead);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
    const auto stream = std::make_shared<GrpcStream>(next_id_++);
    stream->channel = grpc::CreateCustomChannel(address, client_credentials(), arguments);
    stream->client_context = std::make_unique<grpc::ClientContext>();
    grpc::GenericStub stub(stream->channel);
    stream->client = stub.PrepareCall(stream->client_context.get(), kMethod, queue_.get());
    ++stream->operations;
    add(stream);
    stream->client->StartCall(&stream->opened);
    return stream->id;
  }

  void send(StreamId id, Outgoing message) override {
    const auto stream = find(id);
    {
      std::unique_lock<std::mutex> lock;
      if (stream) lock = std::unique_lock<std::mutex>(stream->mutex);
      if (!stream || stream->closed || stream->closing || stream->ending) {
        if (message.borrowed) count_down(message.borrowed);
        return;
      }
      (message.bulk ? stream->bulk : stream->urgent).push_back(std::move(message));
    }
    write_next(*stream);
  }

  void close(StreamId id) override {
    const auto stream = find(id);
    if (!stream) return;
    {
      const std::lock_guard lock(stream->mutex);
      stream->closing = true;
    }
    write_next(*stream);
  }

  void cancel(StreamId id) override {
    if (const auto stream = find(id)) cancel(*stream);
  }

  void forget(const std::atomic<int>& borrowed) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, stream] : streams_) {
      const std::lock_guard stream_lock(stream->mutex);
      std::erase_if(stream->bulk, [&](const Outgoing& message) {
        if (message.borrowed != &borrowed) return false;
        count_down(message.borrowed);
        return true;
      });
    }
  }

 private:
  std::shared_ptr<grpc::ServerCredentials> server_credentials() const {
    if (!options_.tls) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions tls(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = options_.ca;
    tls.pem_key_cert_pairs.push_back({options_.key, options_.certificate});
    return grpc::SslServerCredentials(tls);
  }
  std::shared_ptr<grpc::ChannelCredentials> client_credentials() const {
    if (!options_.tls) return grpc::InsecureChannelCredentials();
    return grpc::SslCredentials({options_.ca, options_.key, options_.certificate});
  }

  std::chrono::system_clock::time_point next_tick() const {
    return std::chrono::system_clock::now() + options_.tick_every;
  }

  // Before the stream's first operation.
  void add(const std::shared_ptr<GrpcStream>& stream) {
    const std::lock_guard lock(mutex_);
    streams_.emplace(stream->id, stream);
  }
  std::shared_ptr<GrpcStream> find(StreamId id) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second;
  }
  static void cancel(GrpcStream& stream) {
    if (stream.is_client()) {
      stream.client_context->TryCancel();
    } else if (stream.open) {
      stream.server_context->TryCancel();
    }
  }

  void accept_next() {
    const auto stream = std::make_shared<GrpcStream>(next_id_++);
    stream->server_context = std::make_unique<grpc::GenericServerContext>();
    stream->server =
        std::make_unique<grpc::GenericServerAsyncReaderWriter>(stream->server_context.get());
    ++stream->operations;
    add(stream);
    service_.RequestCall(stream->server_context.get(), stream->server.get(), queue_.get(),
                         queue_.get(), &stream->accepted);
  }

  void serve() {
    set_thread_name("lockstep-grpc");
    void* got = nullptr;
    bool ok = false;
    while (queue_->Next(&got, &ok)) {
      mutex_
          .lock();  // who began the operation has held it: all that they wrote is seen from here on
      mutex_.unlock();
      const GrpcTag& tag = *static_cast<GrpcTag*>(got);
      if (tag.event == GrpcEvent::tick) {
        on_tick();
        continue;
      }
      GrpcStream& stream = *tag.stream;
      {
        const std::lock_guard lock(stream.mutex);
        --stream.operations;
      }
      handle(stream, tag.event, ok);
      bool free = false;
      {
        const std::lock_guard lock(stream.mutex);
        free = stream.operations == 0 && (stream.finished || stopping_);
      }
      if (free) {
        const std::lock_guard lock(mutex_);
        streams_.erase(stream.id);
      }
    }
  }

  void on_tick() {
    if (!stopping_) events_.tick();
    const std::lock_guard lock(alarm_mutex_);
    if (stopping_) return quiet_.set_value();
    alarm_.Set(queue_.get(), next_tick(), &tick_);
  }

  void handle(GrpcStream& stream, GrpcEvent event, bool ok) {
    switch (event) {
      case GrpcEvent::accepted:
        if (ok && !stopping_) accept_next();
        [[fallthrough]];
      case GrpcEvent::opened:
        return ok ? on_open(stream) : end(stream);
      case GrpcEvent::read:
        return ok ? on_read(stream) : end(stream);
      case GrpcEvent::written:
        return on_written(stream, ok);
      case GrpcEvent::finished:
        return on_finished(stream);
      case GrpcEvent::closed:
      case GrpcEvent::tick:
        return;
    }
  }

  void on_open(GrpcStream& stream) {
    {
      const std::lock_guard lock(stream.mutex);
      stream.open = true;
    }
    read_next(stream);
    write_next(stream);
  }

  void on_read(GrpcStream& stream) {
    const Message message = to_message(std::exchange(stream.incoming, grpc::ByteBuffer()));
    read_next(stream);
    if (!stopping_) events_.received(stream.id, message);
  }

  void on_written(GrpcStream& stream, bool ok) {
    {
      const std::lock_guard lock(stream.mutex);
      stream.writing = false;
      if (!ok) stop_writing(stream);
      if (stream.ending && !stream.is_client()) return finish_server(stream);
    }
    write_next(stream);
  }

  void on_finished(GrpcStream& stream) {
    {
      const std::lock_guard lock(stream.mutex);
      stream.finished = true;
    }
    if (!stopping_) events_.ended(stream.id, stream.status.error_message());
  }

  void read_next(GrpcStream& stream) {
    const std::lock_guard lock(stream.mutex);
    if (stopping_) return;
    ++stream.operations;
    if (stream.is_client())
      stream.client->Read(&stream.incoming, &stream.read);
    else
      stream.server->Read(&stream.incoming, &stream.read);
  }

  // Starts the next write, if one waits and none is under way.
  void write_next(GrpcStream& stream) {
    Outgoing message;
    bool last = false;
    {
      const std::lock_guard lock(stream.mutex);
      if (!stream.open || stream.writing || stream.closed || stopping_) return;
      if (stream.urgent.empty() && stream.bulk.empty()) {
        if (stream.closing) close_now(stream);
        return;
      }
      auto& queue = stream.urgent.empty() ? stream.bulk : stream.urgent;
      message = std::move(queue.front());
      queue.pop_front();
      last = stream.urgent.empty() && stream.bulk.empty();
      stream.writing = true;
      ++stream.operations;
    }
    const grpc::ByteBuffer buffer = to_buffer(message);
    messages_.add(1);
    bytes_.add(static_cast<std::int64_t>(message.head.size() + message.body.size()));
    grpc::WriteOptions options;
    if (last) options.set_write_through();
    if (stream.is_client())
      stream.client->Write(buffer, options, &stream.written);
    else
      stream.server->Write(buffer, options, &stream.written);
  }

  // The next three with the stream's mutex held.
  void close_now(GrpcStream& stream) {
    stream.closed = true;
    if (stream.is_client()) {
      ++stream.operations;
      stream.client->WritesDone(&stream.closed_tag);
    } else if (!stream.ending) {
      stream.ending = true;
      finish_server(stream);
    }
  }
  static void stop_writing(GrpcStream& stream) {
    stream.closed = true;
    drop(stream.urgent);
    drop(stream.bulk);
  }
  void finish_server(GrpcStream& stream) {
    if (stopping_) return;
    ++stream.operations;
    stream.server->Finish(grpc::Status::OK, &stream.finished_tag);
  }

  // Nothing more will be received.
  void end(GrpcStream& stream) {
    const std::lock_guard lock(stream.mutex);
    if (stopping_ || std::exchange(stream.ending, true)) return;
    stop_writing(stream);
    if (stream.is_client()) {
      ++stream.operations;
      stream.client->Finish(&stream.status, &stream.finished_tag);
    } else if (!stream.open) {
      stream.finished = true;  // never accepted
    } else if (!stream.writing) {
      finish_server(stream);
    }
  }

  const WireOptions options_;
  WireEvents& events_;
  telemetry::Counter& messages_ = telemetry::counter("lockstep_wire_messages_total");
  telemetry::Counter& bytes_ = telemetry::counter("lockstep_wire_bytes_total");
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<StreamId> next_id_{1};
  std::mutex mutex_;  // guards streams_
  std::unordered_map<StreamId, std::shared_ptr<GrpcStream>> streams_;
  std::atomic<bool> stopping_{false};
  std::promise<void> quiet_;
  GrpcTag tick_;
  std::mutex alarm_mutex_;  // stopping_ turns true under it
  grpc::Alarm alarm_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Wire> make_wire(WireOptions options, WireEvents& events) {
  return std::make_unique<GrpcWire>(std::move(options), events);
}

}  // namespace lockstep
