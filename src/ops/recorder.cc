// SPDX-License-Identifier: Apache-2.0
#include <lockstep/ops/recorder.h>

#include <lockstep/ops/scatter.h>

namespace lockstep {
namespace {

thread_local OpRecorder* innermost = nullptr;

}  // namespace

GradientSink::~GradientSink() = default;
void GradientSink::put_slices(int input, const std::function<IndexedSlices()>& compute) {
  put(input, [&] { return to_dense(compute()); });
}
OpRecorder::~OpRecorder() = default;

OpRecorder* current_recorder() noexcept { return innermost; }
RecorderScope::RecorderScope(OpRecorder* recorder) noexcept
    : previous_(std::exchange(innermost, recorder)) {}
RecorderScope::~RecorderScope() { innermost = previous_; }

}  // namespace lockstep
