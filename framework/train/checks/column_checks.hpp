// The columns of a table held against those that a model was trained on, by their names.
#pragma once

#include <string>

#include "lacuna/framework/data/types/csv.h"

namespace lacuna {

/// How the columns of a table differ from those in training: in a sentence, or empty.
struct ColumnDifference {
  /// A name is at another place, so a model would read one column as another.
  std::string moved = {};
  /// Only names differ, or there are other columns; no name is at another place.
  std::string renamed = {};
};

/// Compares inputs, their categories, and labels where both have a name. Of tables without names
/// (`header: false`) only categories can be compared.
ColumnDifference compare_columns(const CsvColumns& trained, const CsvColumns& found);

/// Columns as checkpoints keep them: JSON with `inputs` and `label`, and `categories` where there
/// are some. *Errors:* ConfigError where a text is none.
std::string to_json(const CsvColumns& columns);
CsvColumns columns_from_json(const std::string& json);

/// *Errors:* DataError, which begins with `what` ("train.csv"), unless there is no difference.
void require_same_columns(const std::string& what, const CsvColumns& trained,
                          const CsvColumns& found);

}  // namespace lacuna
