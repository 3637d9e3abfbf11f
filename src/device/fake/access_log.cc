// SPDX-License-Identifier: Apache-2.0
#include "device/fake/access_log.h"

#include <algorithm>

namespace lockstep::fake {

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void AccessLog::split(std::uintptr_t at) {
  const auto next = cells_.lower_bound(at);
  if (next != cells_.end() && next->first == at) return;
  cells_.emplace_hint(next, at, next == cells_.begin() ? Cell() : std::prev(next)->second);
}

void AccessLog::note(const Access& access, const Stamp& stamp, const Clock& clock,
                     const std::function<void(const Stamp&, bool)>& race) {
  if (access.begin == access.end) return;
  split(access.begin);
  split(access.end);
  for (auto at = cells_.find(access.begin); at->first != access.end; ++at) {
    Cell& cell = at->second;
    if (cell.written && !cell.writer.happens_before(clock)) race(cell.writer, true);
    if (!access.write) {
      std::erase_if(cell.readers,
                    [&](const Stamp& reader) { return reader.timeline == stamp.timeline; });
      cell.readers.push_back(stamp);
      continue;
    }
    for (const Stamp& reader : cell.readers)
      if (!reader.happens_before(clock)) race(reader, false);
    cell = {.written = true, .writer = stamp, .readers = {}};
  }
}

}  // namespace lockstep::fake
