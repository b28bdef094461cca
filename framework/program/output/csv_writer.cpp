#include "lacuna/framework/program/output/csv_writer.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

double exp_below(const float* logits, int64_t j, int64_t largest) {
  return std::exp(static_cast<double>(logits[j]) - static_cast<double>(logits[largest]));
}

double sum_of_exp(const float* logits, int64_t classes, int64_t largest) {
  double sum = 0.0;
  for (int64_t j = 0; j < classes; ++j) sum += exp_below(logits, j, largest);
  return sum;
}

// In quotes if necessary.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

double probability_of(const float* logits, int64_t classes, int64_t chosen, int64_t largest) {
  return exp_below(logits, chosen, largest) / sum_of_exp(logits, classes, largest);
}

CsvWriter::CsvWriter(const std::string& path, std::vector<std::string> class_names)
    : path_(path), class_names_(std::move(class_names)) {
  if (is_standard_output()) {
    file_ = stdout;
    return;
  }
  std::error_code missing;
  const auto there = std::filesystem::symlink_status(path, missing);
  if (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)) {
    replacement_.emplace(path);
  }
  file_ = std::fopen(replacement_ ? replacement_->temporary_path().c_str() : path.c_str(), "w");
  if (file_ == nullptr) fail();
}

CsvWriter::~CsvWriter() {
  if (file_ != nullptr && !is_standard_output()) std::fclose(file_);
}

void CsvWriter::file_header() { std::fputs("file,", file_); }

void CsvWriter::file_field(const std::string& file) {
  std::fprintf(file_, "%s,", csv_field(file).c_str());
}

void CsvWriter::class_header(int64_t classes) {
  std::fputs("class", file_);
  const bool have_names = class_names_.size() == static_cast<size_t>(classes);
  for (int64_t j = 0; j < classes; ++j) {
    const std::string name =
        have_names ? "p_" + class_names_[static_cast<size_t>(j)] : "p" + std::to_string(j);
    std::fprintf(file_, ",%s", csv_field(name).c_str());
  }
  std::fputc('\n', file_);
}

void CsvWriter::class_row(const float* logits, int64_t classes, int64_t best) {
  const double sum = sum_of_exp(logits, classes, best);
  const auto label = static_cast<size_t>(best);
  const bool has_name = label < class_names_.size();
  std::fputs(has_name ? csv_field(class_names_[label]).c_str() : std::to_string(best).c_str(),
             file_);
  for (int64_t j = 0; j < classes; ++j) {
    std::fprintf(file_, ",%.9g", exp_below(logits, j, best) / sum);
  }
  std::fputc('\n', file_);
}

void CsvWriter::decision_header(int64_t decisions) {
  if (decisions == 1) return class_header(2);
  for (int64_t j = 0; j < decisions; ++j) {
    std::fprintf(file_, "%sp%lld", j > 0 ? "," : "", static_cast<long long>(j));
  }
  std::fputc('\n', file_);
}

void CsvWriter::decision_row(const float* logits, int64_t decisions) {
  if (decisions == 1) {
    const float both[] = {0.0f, logits[0]};  // whose softmax is 1 − σ and σ
    return class_row(both, 2, logits[0] > 0.0f ? 1 : 0);
  }
  for (int64_t j = 0; j < decisions; ++j) {
    std::fprintf(file_, "%s%.9g", j > 0 ? "," : "", 1.0 / (1.0 + std::exp(-double{logits[j]})));
  }
  std::fputc('\n', file_);
}

void CsvWriter::value_header(int64_t outputs) {
  for (int64_t j = 0; j < outputs; ++j) {
    std::fprintf(file_, "%sy%lld", j > 0 ? "," : "", static_cast<long long>(j));
  }
  std::fputc('\n', file_);
}

void CsvWriter::value_row(const float* values, int64_t outputs) {
  for (int64_t j = 0; j < outputs; ++j) {
    std::fprintf(file_, "%s%.9g", j > 0 ? "," : "", static_cast<double>(values[j]));
  }
  std::fputc('\n', file_);
}

void CsvWriter::top_header(int64_t count) {
  for (int64_t i = 1; i <= count; ++i) {
    std::fprintf(file_, "%sclass%lld,logit%lld", i > 1 ? "," : "", static_cast<long long>(i),
                 static_cast<long long>(i));
  }
  std::fputc('\n', file_);
}

void CsvWriter::top_row(std::span<const int64_t> classes, std::span<const float> logits) {
  for (size_t i = 0; i < classes.size(); ++i) {
    std::fputs(i > 0 ? "," : "", file_);
    if (classes[i] < 0) {
      std::fputc(',', file_);
    } else {
      std::fprintf(file_, "%lld,%.9g", static_cast<long long>(classes[i]),
                   static_cast<double>(logits[i]));
    }
  }
  std::fputc('\n', file_);
}

void CsvWriter::token_header() { std::fputs("line,mask,token,probability\n", file_); }

void CsvWriter::token_row(int64_t line, int64_t mask, std::string_view token, double probability) {
  std::string quoted = "\"";
  for (const char c : token) quoted.append(c == '"' ? 2 : 1, c);
  std::fprintf(file_, "%lld,%lld,%s\",%.9g\n", static_cast<long long>(line),
               static_cast<long long>(mask), quoted.c_str(), probability);
}

void CsvWriter::close() {
  if (std::fflush(file_) != 0 || std::ferror(file_) != 0) fail();
  if (is_standard_output()) return;
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail();
  if (!replacement_) return;
  replacement_->flush();
  replacement_->commit();
}

void CsvWriter::fail() const {
  throw StateError("cannot write " +
                   (is_standard_output() ? "to the standard output" : "'" + path_ + "'") + ": " +
                   std::strerror(errno));
}

}  // namespace lacuna
