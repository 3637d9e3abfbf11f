// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace lockstep {

// An extent or step along height and width; one number stands for both.
struct Size2d {
  std::int64_t height = 1;
  std::int64_t width = 1;

  constexpr Size2d(std::int64_t both) : height(both), width(both) {}  // NOLINT: implicit
  constexpr Size2d(std::int64_t height, std::int64_t width) : height(height), width(width) {}
  friend bool operator==(const Size2d&, const Size2d&) = default;
};

// The same along depth, height and width.
struct Size3d {
  std::int64_t depth = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;

  constexpr Size3d(std::int64_t all) : depth(all), height(all), width(all) {}  // NOLINT: implicit
  constexpr Size3d(std::int64_t depth, std::int64_t height, std::int64_t width)
      : depth(depth), height(height), width(width) {}
  friend bool operator==(const Size3d&, const Size3d&) = default;
};

// The same along any number of axes, 1 to 3.
template <int axes>
using SizeNd =
    std::conditional_t<axes == 1, std::int64_t, std::conditional_t<axes == 2, Size2d, Size3d>>;

// How an image is extended before a window slides over it, with TensorFlow's rules:
//   valid   not at all: out = ceil((in - span + 1) / stride), where span is what the window covers,
//           (window - 1) * dilation + 1
//   same    so that out = ceil(in / stride): max(0, (out - 1) * stride + span - in) rows, half of
//           them, rounded down, before the image and the others after it
//   {before, after}, {top, bottom, left, right} or {front, back, top, bottom, left, right}
//           by these elements, rows and columns, planes, for one, two and three axes
class Padding {
 public:
  enum class Kind { valid, same, given };
  static const Padding valid, same;

  constexpr Padding(std::int64_t before, std::int64_t after)
      : kind_(Kind::given), axes_(1), left_(before), right_(after) {}
  constexpr Padding(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right)
      : kind_(Kind::given), axes_(2), top_(top), bottom_(bottom), left_(left), right_(right) {}
  constexpr Padding(std::int64_t front, std::int64_t back, std::int64_t top, std::int64_t bottom,
                    std::int64_t left, std::int64_t right)
      : kind_(Kind::given),
        axes_(3),
        front_(front),
        back_(back),
        top_(top),
        bottom_(bottom),
        left_(left),
        right_(right) {}

  constexpr Kind kind() const { return kind_; }
  // For how many axes it was given; 0 unless given.
  constexpr int axes() const { return axes_; }
  // 0 unless given. The only axis of one is the width.
  constexpr std::int64_t front() const { return front_; }
  constexpr std::int64_t back() const { return back_; }
  constexpr std::int64_t top() const { return top_; }
  constexpr std::int64_t bottom() const { return bottom_; }
  constexpr std::int64_t left() const { return left_; }
  constexpr std::int64_t right() const { return right_; }
  friend bool operator==(const Padding&, const Padding&) = default;

 private:
  constexpr explicit Padding(Kind kind) : kind_(kind) {}

  Kind kind_;
  int axes_ = 0;
  std::int64_t front_ = 0;
  std::int64_t back_ = 0;
  std::int64_t top_ = 0;
  std::int64_t bottom_ = 0;
  std::int64_t left_ = 0;
  std::int64_t right_ = 0;
};

inline constexpr Padding Padding::valid{Padding::Kind::valid};
inline constexpr Padding Padding::same{Padding::Kind::same};

}  // namespace lockstep
