// Files of sparse examples with several labels each, in the text format of the extreme
// classification repository.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// Examples in compressed rows: those of example i are from begin[i] to begin[i + 1].
struct SparseExamples {
  int64_t features = 0;  ///< ids are below it
  int64_t labels = 0;    ///< and labels below this
  std::vector<int64_t> feature_begin{0}, label_begin{0};
  std::vector<int32_t> feature_ids = {};  ///< ascending in each example, none twice
  std::vector<float> values = {};         ///< of the features, finite
  std::vector<int32_t> label_ids = {};    ///< ascending in each example, none twice

  int64_t size() const { return static_cast<int64_t>(feature_begin.size()) - 1; }
};

/// Reads a file, plain or .gz. Its first line is "examples features labels", three numbers; each
/// other line is an example: labels with commas between them, or none, and behind a space its
/// features as "id:value", with spaces between them. Ids and labels count from 0. *Errors:*
/// DataError "file:line: …" on anything else, on ids or labels out of range or twice in a line, on
/// values that are not finite, and on another number of examples than the first line has; also when
/// the examples do not fit into the memory that is left. *Cost:* 8 bytes for each feature of an
/// example, 4 for each label and 16 for each example; the text is read in pieces of 1 MiB.
SparseExamples read_labelled_sparse(const std::string& path);

}  // namespace lacuna
