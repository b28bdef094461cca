#include "common/request.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna::bench {

std::vector<Option> CaseRequest::options(std::string shape_help) {
  return {{.name = "--shape", .help = std::move(shape_help), .texts = &shapes},
          {.name = "--sparsity",
           .help = "Measure these sparsities alone, as 0.3 0.6",
           .numbers = &sparsities,
           .highest = 0.999999}};
}

void read_sizes(const std::string& shape, char separator, std::string_view form,
                std::span<int64_t> into) {
  const char* at = shape.data();
  const char* const end = at + shape.size();
  for (size_t i = 0; i < into.size(); ++i) {
    const auto [behind, error] = std::from_chars(at, end, into[i]);
    const bool is_last = i + 1 == into.size();
    const bool goes_on = is_last ? behind == end : behind != end && *behind == separator;
    if (error != std::errc() || into[i] < 1 || !goes_on) {
      throw ConfigError("--shape: expected " + std::string(form) + ", found '" + shape + "'");
    }
    at = is_last ? end : behind + 1;
  }
}

}  // namespace lacuna::bench
