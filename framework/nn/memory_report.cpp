#include "lacuna/framework/nn/memory_report.hpp"

#include <fmt/core.h>

namespace lacuna {
namespace {

std::string in_words(int64_t bytes, int64_t nnz) {
  return fmt::format("{:.2f} MB, {:.1f} bytes per nonzero", static_cast<double>(bytes) / 1e6,
                     bytes_per_nonzero(bytes, nnz));
}

Config to_config(const ParameterBytes& bytes) {
  return Config::map({{"values", bytes.values},
                      {"derived", bytes.derived},
                      {"gradient", bytes.gradient},
                      {"states", bytes.states},
                      {"index", bytes.index},
                      {"total", bytes.total()}});
}

}  // namespace

double bytes_per_nonzero(int64_t bytes, int64_t nnz) {
  return nnz == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(nnz);
}

int64_t dense_bytes(const Module& model) {
  int64_t sum = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const ParameterBytes bytes = parameter->byte_counts();
    const int64_t arrays =
        1 + (bytes.gradient > 0 ? 1 : 0) + (bytes.values > 0 ? bytes.states / bytes.values : 0);
    sum += arrays * parameter->numel() * static_cast<int64_t>(sizeof(float));
  }
  return sum;
}

Config memory_report(const Module& model) {
  Config list = Config::list();
  for (const ParameterPtr& parameter : model.parameters()) {
    const Pattern& pattern = *parameter->pattern();
    const ParameterBytes bytes = parameter->byte_counts();
    Config shape = Config::list();
    for (const int64_t size : parameter->shape().sizes()) shape.push_back(size);
    list.push_back(
        Config::map({{"name", parameter->name()},
                     {"shape", shape},
                     {"layout", std::string(pattern.layout().name())},
                     {"nnz", pattern.nnz()},
                     {"bytes", to_config(bytes)},
                     {"bytes_per_nonzero", bytes_per_nonzero(bytes.total(), pattern.nnz())}}));
  }
  return list;
}

std::vector<std::string> memory_lines(const Module& model) {
  std::vector<std::string> lines;
  int64_t bytes = 0, nnz = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const Pattern& pattern = *parameter->pattern();
    bytes += parameter->bytes();
    nnz += pattern.nnz();
    if (pattern.is_dense()) continue;
    lines.push_back(fmt::format("  {} {}, {} nonzeros, {}", parameter->name(),
                                pattern.layout().name(), pattern.nnz(),
                                in_words(parameter->bytes(), pattern.nnz())));
  }
  lines.push_back("parameters, gradients and optimizer states take " + in_words(bytes, nnz));
  return lines;
}

}  // namespace lacuna
