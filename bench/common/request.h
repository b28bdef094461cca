// What a program that compares layers is asked for in place of its usual cases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/program.h"

namespace lacuna::bench {

struct CaseRequest {
  std::vector<std::string> shapes;
  std::vector<double> sparsities;

  /// --shape, whose help text describes its form, and --sparsity.
  std::vector<Option> options(std::string shape_help);
};

/// The sizes of one --shape, as many as `into` holds. *Errors:* ConfigError with the form, as in
/// "BATCHxINxOUT, as 128x1024x1024", where the text is no such number of sizes of at least 1.
void read_sizes(const std::string& shape, char separator, std::string_view form,
                std::span<int64_t> into);

}  // namespace lacuna::bench
