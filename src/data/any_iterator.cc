// SPDX-License-Identifier: Apache-2.0
// Walks and positions: AnyIterator, and the part of AnyDataset that counts epochs.
#include <mutex>

#include "data/node.h"

namespace lockstep::data {

// What a dataset's visit_state saves: where the walk begun last stands, or where the next one
// begins.
struct Progress {
  std::mutex mutex;
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  bool begun = false;        // a walk stands there; the next one takes the next epoch
  std::uint64_t serial = 0;  // of the walk begun last; others do not report

  // A walk begins there; returns its serial number.
  std::uint64_t begin_walk(std::int64_t at_epoch, std::int64_t at_position) {
    const std::lock_guard lock(mutex);
    return place_walk(at_epoch, at_position);
  }
  // The walk of a new loop: where the next epoch begins, or where a restore left off. One step with
  // its choice, so that loops begun in several threads get an epoch each.
  std::uint64_t begin_next(std::int64_t& next_epoch, std::int64_t& next_position) {
    const std::lock_guard lock(mutex);
    next_epoch = begun ? epoch + 1 : epoch;
    next_position = begun ? 0 : position;
    return place_walk(next_epoch, next_position);
  }
  // The state of walk `from`, if it is the last.
  void report(std::uint64_t from, std::int64_t at_epoch, std::int64_t at_position, bool ended) {
    const std::lock_guard lock(mutex);
    if (from != serial) return;
    epoch = ended ? at_epoch + 1 : at_epoch;
    position = ended ? 0 : at_position;
    begun = !ended;
  }

 private:
  std::uint64_t place_walk(std::int64_t at_epoch, std::int64_t at_position) {
    epoch = at_epoch;
    position = at_position;
    begun = true;
    return ++serial;
  }
};

AnyIterator::AnyIterator(std::shared_ptr<const DatasetNode> node,
                         std::shared_ptr<Progress> progress, std::uint64_t serial,
                         std::int64_t epoch, std::int64_t position)
    : node_(std::move(node)), progress_(std::move(progress)), serial_(serial) {
  move_to(epoch, position);
}

AnyIterator::AnyIterator(AnyIterator&&) noexcept = default;
AnyIterator::~AnyIterator() = default;

AnyIterator& AnyIterator::operator=(AnyIterator&& other) noexcept {
  walk_.reset();  // before the node that it walks through
  node_ = std::move(other.node_);
  progress_ = std::move(other.progress_);
  walk_ = std::move(other.walk_);
  error_ = std::move(other.error_);
  epoch_ = other.epoch_;
  position_ = other.position_;
  serial_ = other.serial_;
  ended_ = other.ended_;
  return *this;
}

std::optional<Leaves> AnyIterator::next() {
  if (error_) std::rethrow_exception(error_);
  if (ended_) return std::nullopt;
  require(walk_ != nullptr, SourceLocation{}, "Iterator::next",
          "expected an iterator, got one that was moved from");
  std::optional<Leaves> leaves;
  try {
    Item item;
    ended_ = !walk_->next(item);
    if (!ended_) leaves = node_->read(std::move(item));
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  if (!ended_) ++position_;
  if (progress_) progress_->report(serial_, epoch_, position_, ended_);
  return leaves;
}

std::int64_t AnyIterator::skip(std::int64_t count) {
  if (error_) std::rethrow_exception(error_);
  std::int64_t done = 0;
  try {
    if (count > 0) done = walk_->skip(count);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  position_ += done;
  if (progress_) progress_->report(serial_, epoch_, position_, ended_);
  return done;
}

void AnyIterator::visit_state(StateVisitor& visitor) {
  std::int64_t epoch = epoch_, position = position_;
  visitor.visit("epoch", epoch);
  visitor.visit("position", position);
  if (epoch == epoch_ && position == position_) return;
  move_to(epoch, position);
  if (progress_) serial_ = progress_->begin_walk(epoch, position);
}

void AnyIterator::move_to(std::int64_t epoch, std::int64_t position) {
  require(epoch >= 0 && position >= 0, SourceLocation{}, "Iterator::visit_state",
          "epoch and position must not be negative, got ", epoch, " and ", position);
  auto walk = node_->walk({.epoch = static_cast<std::uint64_t>(epoch), .stop = {}});
  const std::int64_t reached = walk->skip(position);
  require(reached == position, SourceLocation{}, "Iterator::visit_state", "position ", position,
          " is beyond the end of epoch ", epoch, ", which has ", reached,
          " elements; restore with the dataset that was saved");
  walk_ = std::move(walk);
  error_ = nullptr;
  ended_ = false;
  epoch_ = epoch;
  position_ = position;
}

AnyDataset::AnyDataset(std::shared_ptr<const DatasetNode> node)
    : node_(std::move(node)), progress_(std::make_shared<Progress>()) {}

AnyIterator AnyDataset::iterator() const {
  std::int64_t epoch = 0, position = 0;
  const std::uint64_t serial = progress_->begin_next(epoch, position);
  return AnyIterator(node_, progress_, serial, epoch, position);
}

AnyIterator AnyDataset::iterator(std::int64_t epoch, std::int64_t position) const {
  return AnyIterator(node_, nullptr, 0, epoch, position);
}

void AnyDataset::visit_state(StateVisitor& visitor) const {
  std::int64_t epoch = 0, position = 0;
  {
    const std::lock_guard lock(progress_->mutex);
    epoch = progress_->epoch;
    position = progress_->position;
  }
  std::int64_t new_epoch = epoch, new_position = position;
  visitor.visit("epoch", new_epoch);
  visitor.visit("position", new_position);
  if (new_epoch == epoch && new_position == position) return;
  require(new_epoch >= 0 && new_position >= 0, SourceLocation{}, "Dataset::visit_state",
          "epoch and position must not be negative, got ", new_epoch, " and ", new_position);
  const std::lock_guard lock(progress_->mutex);
  ++progress_->serial;  // walks begun before do not report any more
  progress_->epoch = new_epoch;
  progress_->position = new_position;
  progress_->begun = false;
}

}  // namespace lockstep::data
