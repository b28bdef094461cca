// The greedy selection in tiles of 4 × 4, many at a time: see nm_selection.h.
#pragma once

#include <cstdint>

namespace lacuna {

/// The bits of `tiles` tiles side by side in four rows of weights, `stride` floats apart, to four
/// rows of bits, `bytes` bytes apart, a bit for each column: what reference::select_greedily keeps.
/// Two tiles make a byte; the last byte's upper half is undefined where their number is odd.
/// *Requires* room for (tiles + 1) / 2 bytes in each row. *Cost:* about 15 vector operations for
/// the weights of a vector; some rounds of bit operations on 128 tiles.
void greedy_tiles(const float* weights, int64_t stride, int64_t tiles, uint8_t* bits,
                  int64_t bytes);

}  // namespace lacuna
