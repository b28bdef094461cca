// How large masks are drawn on a page.
#pragma once

#include <cstdint>

namespace lacuna {

/// Rows and columns of a mask's picture on a page, at most.
inline constexpr int64_t kMostPixels = 400;

}  // namespace lacuna
