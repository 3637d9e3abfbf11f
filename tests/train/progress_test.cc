// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lockstep/replica/context.h>
#include <lockstep/train/progress.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "train/progress_line.h"

namespace lockstep::train {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

// What was written to a stream so far.
class Captured {
 public:
  Captured() : stream_(open_memstream(&text_, &size_)) {}
  ~Captured() {
    std::fclose(stream_);
    std::free(text_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

// A worker of a group of two.
class Worker final : public WorkerGroup {
 public:
  explicit Worker(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  void barrier(std::string_view, SourceLocation) override {}
  std::vector<std::byte> broadcast(std::string_view, std::vector<std::byte> bytes, int,
                                   SourceLocation) override {
    return bytes;
  }
  std::vector<std::vector<std::byte>> all_gather(std::string_view, std::vector<std::byte> bytes,
                                                 SourceLocation) override {
    return {bytes, bytes};
  }

 private:
  int rank_;
};

class Group final : public ReplicaGroup {
 public:
  explicit Group(int rank) : workers_(rank) {}
  std::span<const Device> local_devices() const override { return {&device_, 1}; }
  int num_replicas_in_sync() const override { return 2; }
  WorkerGroup& workers() override { return workers_; }
  bool run_active() const override { return false; }
  Tensor broadcast_initial_value(std::string_view, Tensor value, SourceLocation) override {
    return value;
  }

 private:
  Device device_;
  Worker workers_;
};

TEST(ProgressLine, ShowsBarTimeThroughputAndRest) {
  const ProgressState state{.title = "epoch 3",
                            .steps = 10,
                            .total_steps = 40,
                            .samples = 1280,
                            .seconds = 0.5,
                            .values = {{"loss", 0.25}, {"accuracy", 0.9375}}};
  // 50 ms a step, 1280 / 0.5 samples a second, 30 steps or 1.5 s to go; a quarter of 24 columns.
  EXPECT_EQ(progress_line(state, true),
            "epoch 3  10/40 [=====>..................]  50.0 ms/step  2560 samples/s  ETA 0:02  "
            "loss 0.25  accuracy 0.9375");
  EXPECT_EQ(progress_line(state, false),
            "epoch 3  10/40 steps  50.0 ms/step  2560 samples/s  loss 0.25  accuracy 0.9375");
}

TEST(ProgressLine, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(progress_line({}, true), "0 steps");
  EXPECT_EQ(progress_line({.total_steps = 0}, true), "0/0 steps");
  EXPECT_EQ(progress_line({.title = "test", .steps = 4, .seconds = 10}, true),
            "test  4 steps  2.50 s/step");
}

TEST(ProgressLine, FillsTheBarAtTheEndAndBeyond) {
  const std::string full(24, '=');
  EXPECT_THAT(progress_line({.steps = 7, .total_steps = 7, .seconds = 1}, true),
              HasSubstr("7/7 [" + full + "]"));
  EXPECT_THAT(progress_line({.steps = 9, .total_steps = 7, .seconds = 1}, true),
              HasSubstr("9/7 [" + full + "]"));
}

TEST(ProgressLine, ChoosesUnits) {
  EXPECT_THAT(progress_line({.steps = 1, .seconds = 4.2e-5}, false), HasSubstr("42 us/step"));
  // 3 s per step, 1241 steps to go: 3723 s.
  EXPECT_THAT(progress_line({.steps = 1, .total_steps = 1242, .seconds = 3}, true),
              HasSubstr("ETA 1:02:03"));
}

TEST(ProgressBar, WritesOneLineWhenNotOnATerminal) {
  Captured out;
  ProgressBar bar({.title = "epoch 1", .total_steps = 2, .interval = {}, .stream = out.stream()});
  bar.step(8, {{"loss", 0.5f}});
  bar.step(8, {{"loss", 0.25f}});
  EXPECT_EQ(out.text(), "");
  bar.finish({{"accuracy", 1.0}});
  EXPECT_THAT(out.text(), MatchesRegex("epoch 1  2/2 steps  .*/step  [0-9]+ samples/s  "
                                       "loss 0.25  accuracy 1\n"));
  const std::string before = out.text();
  bar.step(8);
  bar.finish();
  EXPECT_EQ(out.text(), before);
}

TEST(ProgressBar, RedrawsInPlaceOnATerminal) {
  Captured out;
  {
    ProgressBar bar({.total_steps = 2, .interval = {}, .stream = out.stream(), .terminal = true});
    bar.step();
    EXPECT_THAT(out.text(), MatchesRegex("\r\x1b\\[K1/2 \\[.*\\].*ETA 0:01"));
    bar.step();
    bar.finish();
    EXPECT_THAT(out.text(), EndsWith("step\n"));
  }
  EXPECT_THAT(out.text(), EndsWith("step\n"));
}

TEST(ProgressBar, EndsAnUnfinishedLine) {
  Captured out;
  {
    ProgressBar bar({.interval = {}, .stream = out.stream(), .terminal = true});
    bar.step();
    EXPECT_THAT(out.text(), EndsWith("step"));
  }
  EXPECT_THAT(out.text(), EndsWith("step\n"));
}

TEST(ProgressBar, RedrawsNoMoreOftenThanTheInterval) {
  Captured out;
  ProgressBar bar({.interval = std::chrono::hours(1), .stream = out.stream(), .terminal = true});
  for (int i = 0; i < 100; ++i) bar.step();
  EXPECT_EQ(out.text(), "");
  bar.finish();
  EXPECT_THAT(out.text(), HasSubstr("100 steps"));
}

TEST(ProgressBar, IsSilentOnWorkersThatAreNotChief) {
  Captured chiefs, others;
  for (int rank = 0; rank < 2; ++rank) {
    const ContextScope scope(std::make_shared<Group>(rank));
    ProgressBar bar(
        {.interval = {}, .stream = (rank ? others : chiefs).stream(), .terminal = true});
    bar.step(1, {{"loss", 1.0f}});
    bar.finish();
  }
  EXPECT_THAT(chiefs.text(), HasSubstr("loss 1"));
  EXPECT_EQ(others.text(), "");
}

TEST(ProgressBar, RefusesWhatItCannotUse) {
  EXPECT_THROW(ProgressBar({.stream = nullptr}), InvalidArgument);
  try {
    ProgressBar bar({.interval = std::chrono::milliseconds(-3)});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[ProgressBar]"), HasSubstr("-3 ms")));
    EXPECT_THAT(error.location().file, HasSubstr("progress_test.cc"));
  }
}

}  // namespace
}  // namespace lockstep::train
