// Scores of tiles of weights: what selections of blocks and of shared columns compare.
#pragma once

#include <cstdint>
#include <span>

namespace lacuna {

enum class TileNorm {
  L1,  ///< Σ |w|
  L2,  ///< √ Σ w²
};

/// Tiles of rows × columns weights.
struct TileShape {
  int64_t rows = 1, columns = 1;
};

/// The norm of each tile of a row-major matrix. *Shapes:* weights [rows, columns], scores
/// [rows / tile.rows, columns / tile.columns]. *Requires* sides that the tile's divide. *Cost:* one
/// pass over the weights; several threads, whose number does not change the result.
void block_scores(TileNorm norm, const TileShape& tile, const float* weights, int64_t rows,
                  int64_t columns, float* scores);

/// The norm of each tile of a matrix that has only some tiles, from their weights alone, ascending
/// by flat index. Tiles of tile row i are those from row_begin[i] to row_begin[i + 1] − 1, in the
/// order of their columns; so are the scores. The same tile scores the same in both functions.
/// *Shapes:* weights [tiles · tile.rows · tile.columns], scores [tiles].
void stored_block_scores(TileNorm norm, const TileShape& tile, std::span<const float> weights,
                         std::span<const int64_t> row_begin, std::span<float> scores);

}  // namespace lacuna
