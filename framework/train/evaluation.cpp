#include "lacuna/framework/train/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <new>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/train/label_lists.hpp"
#include "lacuna/framework/train/run_model.hpp"

namespace lacuna {
namespace {

// What regression's answers are judged by. Targets are counted from a batch's first one, so that
// their squares lose no digits far from zero.
class RegressionSums {
 public:
  static constexpr size_t kNumbers = 6;  // of an output

  void add(const Tensor& output, const Tensor& targets, const std::vector<double>& scale) {
    const std::vector<float> answers = output.to_vector(), wanted = targets.to_vector();
    const auto outputs = static_cast<size_t>(targets.shape().features());
    columns_.resize(outputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      Column& c = columns_[i % outputs];
      const double unit = scale.empty() ? 1.0 : scale[i % outputs];
      const double target = static_cast<double>(wanted[i]) * unit;
      const double off = static_cast<double>(answers[i]) * unit - target;
      if (c.count++ == 0) c.first = target;
      c.sum += target - c.first;
      c.squares += (target - c.first) * (target - c.first);
      c.errors += std::abs(off);
      c.squared_errors += off * off;
    }
  }

  void add_to(std::vector<double>& numbers) const {
    for (const Column& c : columns_) {
      numbers.insert(numbers.end(), {static_cast<double>(c.count), c.first, c.sum, c.squares,
                                     c.errors, c.squared_errors});
    }
  }

  // What `add_to` gave of a later batch. Its targets are counted from this one's first from then
  // on.
  void join(std::span<const double> numbers) {
    columns_.resize(numbers.size() / kNumbers);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const double* n = numbers.data() + i * kNumbers;
      Column& c = columns_[i];
      if (c.count == 0) c.first = n[1];
      const double distance = n[1] - c.first;
      c.count += static_cast<int64_t>(n[0]);
      c.sum += n[2] + n[0] * distance;
      c.squares += n[3] + 2.0 * distance * n[2] + n[0] * distance * distance;
      c.errors += n[4];
      c.squared_errors += n[5];
    }
  }

  void write_to(Evaluation& result) const {
    double r2 = 0.0, errors = 0.0, squared_errors = 0.0, count = 0.0;
    for (const Column& c : columns_) {
      const double distances = c.squares - c.sum * c.sum / static_cast<double>(c.count);
      r2 += distances > 0.0 ? 1.0 - c.squared_errors / distances
                            : std::numeric_limits<double>::quiet_NaN();
      errors += c.errors;
      squared_errors += c.squared_errors;
      count += static_cast<double>(c.count);
    }
    result.r2 = r2 / static_cast<double>(columns_.size());
    result.mae = errors / count;
    result.rmse = std::sqrt(squared_errors / count);
  }

 private:
  struct Column {
    int64_t count = 0;
    double first = 0.0, sum = 0.0, squares = 0.0, errors = 0.0, squared_errors = 0.0;
  };
  std::vector<Column> columns_;
};

// The counts over examples, in the order of `numbers_of`; then the sums of regression.
struct Counts {
  double loss = 0.0, weight = 0.0, correct = 0.0, in_largest = 0.0, examples = 0.0, answers = 0.0;
  std::array<double, kPrecisions.size()> hits = {};  // labels among the largest outputs
  RegressionSums regression;
  static constexpr size_t kFirst = 6, kNumbers = kFirst + kPrecisions.size();

  void join(std::span<const double> n) {
    loss += n[0];
    weight += n[1];
    correct += n[2];
    in_largest += n[3];
    examples += n[4];
    answers += n[5];
    for (size_t i = 0; i < hits.size(); ++i) hits[i] += n[kFirst + i];
    regression.join(n.subspan(kNumbers));
  }
  void add_to(std::vector<double>& numbers) const {
    numbers.insert(numbers.end(), {loss, weight, correct, in_largest, examples, answers});
    numbers.insert(numbers.end(), hits.begin(), hits.end());
    regression.add_to(numbers);
  }
};

std::vector<double> numbers_of(const LossFunction& loss, const Variable& output,
                               const Batch& batch) {
  const auto mean = static_cast<double>(loss(output, batch).value().item());
  const double weight = loss.weight_of(batch);
  const int64_t correct = loss.has_accuracy() ? loss.count_correct(output.value(), batch) : 0;
  const int64_t in_largest =
      loss.has_top5() ? count_in_largest(output.value(), batch.labels, 5) : 0;
  std::vector<double> numbers{mean * weight,
                              weight,
                              static_cast<double>(correct),
                              static_cast<double>(in_largest),
                              static_cast<double>(batch.size),
                              static_cast<double>(loss.answers_of(batch))};
  const std::array<double, kPrecisions.size()> hits =
      loss.has_label_lists() ? count_hits(top_classes(output, kPrecisions.back().count), batch)
                             : std::array<double, kPrecisions.size()>();
  numbers.insert(numbers.end(), hits.begin(), hits.end());
  if (loss.is_regression()) {
    RegressionSums sums;
    sums.add(output.value(), batch.targets, loss.target_scale());
    sums.add_to(numbers);
  }
  return numbers;
}

// The last layer's outputs for some rows (tokens) at a time.
void count_rows(Module& layer, const Tensor& inputs, const LossFunction& loss, const Batch& batch,
                int64_t rows, Counts& counts) {
  const Tensor all = reordered(inputs, Order::RowMajor);
  const int64_t features = all.shape().features(), count = all.shape().batch();
  std::vector<int64_t> labels(batch.labels.values().begin(), batch.labels.values().end());
  if (count < static_cast<int64_t>(labels.size())) std::erase(labels, kIgnoredLabel);
  for (int64_t at = 0; at < count; at += rows) {
    const int64_t taken = std::min(rows, count - at);
    const auto values = static_cast<size_t>(taken * features);
    const Tensor piece =
        Tensor::from(Shape{taken, features}, std::span(all.data() + at * features, values));
    const auto first = labels.begin() + at;
    Batch of_rows;
    of_rows.labels = IndexTensor(Shape{taken}, {first, first + taken});
    of_rows.size = at == 0 ? batch.size : 0;
    counts.join(numbers_of(loss, layer(Variable(piece)), of_rows));
  }
}

// One piece of a batch.
void count_piece(Module& model, const LossFunction& loss, const Batch& batch, int64_t rows,
                 const BatchWatcher& watcher, Counts& counts) {
  if (rows == 0 || batch.labels.numel() <= rows) {
    const Variable output = run_for_loss(model, batch);
    counts.join(numbers_of(loss, output, batch));
    if (watcher && !loss.has_label_lists()) watcher(output.value(), batch);
    return;
  }
  Module* last = last_row_layer(model);
  const auto before = [&](const Variable& input) {
    Variable value = input;
    for (const auto& [name, layer] : model.children()) {
      if (layer != last) value = (*layer)(value);
    }
    return value;
  };
  count_rows(*last, run_for_loss(before, batch).value(), loss, batch, rows, counts);
}

// The first of those that are the longest. *Cost:* memory for `count` of them alone.
std::vector<int64_t> longest_examples(const Dataset& data, int64_t count) {
  const std::span<const int32_t> lengths = data.lengths();
  const auto comes_before = [lengths](int64_t a, int64_t b) {
    if (lengths.empty()) return a < b;
    const int32_t of_a = lengths[static_cast<size_t>(a)], of_b = lengths[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  const int64_t seen = lengths.empty() ? count : data.size();
  std::vector<int64_t> indices;  // a heap, the last of them first
  for (int64_t i = 0; i < seen; ++i) {
    if (std::ssize(indices) == count) {
      if (!comes_before(i, indices.front())) continue;
      std::ranges::pop_heap(indices, comes_before);
      indices.pop_back();
    }
    indices.push_back(i);
    std::ranges::push_heap(indices, comes_before);
  }
  std::ranges::sort_heap(indices, comes_before);
  return indices;
}

ExamplePieces pieces_of(Module& model, const Dataset& data, int64_t batch_size) {
  return example_pieces(model, data.example_shape(), std::min(batch_size, data.size()));
}

Batch examples_from(const Dataset& data, int64_t first, int64_t end) {
  std::vector<int64_t> indices(static_cast<size_t>(end - first));
  std::iota(indices.begin(), indices.end(), first);
  return data.gather(indices);
}

// Tells what an evaluation needs where there is no memory for it.
[[noreturn]] void fail_for_memory(const ExamplePieces& pieces, const std::string& what) {
  const bool is_one = pieces.examples == 1;
  throw Error(
      fmt::format("{}; evaluating {} at a time takes about {:.1f} MB; {}", what,
                  is_one ? std::string("one example") : fmt::format("{} examples", pieces.examples),
                  pieces.bytes / 1e6,
                  is_one ? "a smaller model or shorter examples need less"
                         : "a smaller train.eval_batch_size or model needs less"));
}

// Only half of the estimate is certain: a layer may return its input.
void require_fits(const ExamplePieces& pieces) {
  const auto there = static_cast<double>(total_memory());
  if (pieces.bytes / 2.0 <= there) return;
  fail_for_memory(pieces, fmt::format("out of memory: there are {:.1f} MB in all", there / 1e6));
}

template <class Action>
void naming_memory(const ExamplePieces& pieces, const Action& action) {
  require_fits(pieces);
  try {
    action();
  } catch (const MemoryError& error) {
    fail_for_memory(pieces, error.what());
  } catch (const std::bad_alloc& error) {
    fail_for_memory(pieces, describe(error));
  }
}

// Batch after batch, whichever process has seen it: batch b is the one at b / N of process b % N.
Counts joined(const std::vector<double>& own, size_t numbers, Communicator* job) {
  const std::vector<std::vector<double>> all =
      job == nullptr ? std::vector<std::vector<double>>{own} : job->gather(own);
  Counts counts;
  for (size_t b = 0; true; ++b) {
    const std::vector<double>& from = all[b % all.size()];
    const size_t at = b / all.size() * numbers;
    if (at >= from.size()) return counts;
    counts.join(std::span(from).subspan(at, numbers));
  }
}

}  // namespace

double bits_per_character(double loss, const Dataset& data) {
  const double characters = data.characters_per_label();
  if (!(characters > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  return loss / std::numbers::ln2 / characters;
}

std::string bits_in_words(double bits, double unknown_tokens) {
  const std::string text = fmt::format("{:.4g} bits per character", bits);
  if (std::isnan(unknown_tokens) || unknown_tokens == 0.0) return text;
  return fmt::format("{}, {:.2g} % of the tokens [UNK]", text, 100.0 * unknown_tokens);
}

Evaluation evaluate(Module& model, const LossFunction& trained_with, const Dataset& data,
                    int64_t batch_size, const BatchWatcher& watcher, Communicator* job) {
  if (data.size() == 0) throw DataError("there are no examples to evaluate on");
  if (batch_size < 1) {
    throw StateError(fmt::format("batch_size must be at least 1, found {}", batch_size));
  }
  const LossFunction loss = trained_with.for_evaluation();
  const EvaluationMode mode(model);
  std::vector<double> own;
  const EveryBatch which =
      job == nullptr ? EveryBatch{} : EveryBatch{.place = job->rank(), .of = job->size()};
  const ExamplePieces pieces = pieces_of(model, data, batch_size);
  naming_memory(pieces, [&] {
    for (int64_t begin = which.place * batch_size; begin < data.size();
         begin += which.of * batch_size) {
      const int64_t end = std::min(begin + batch_size, data.size());
      Counts counts;
      for (int64_t at = begin; at < end; at += pieces.examples) {
        const Batch piece = examples_from(data, at, std::min(at + pieces.examples, end));
        count_piece(model, loss, piece, pieces.rows, watcher, counts);
      }
      counts.add_to(own);
    }
  });
  const size_t of_outputs =
      loss.is_regression() ? static_cast<size_t>(loss.outputs()) * RegressionSums::kNumbers : 0;
  const Counts counts = joined(own, Counts::kNumbers + of_outputs, job);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Evaluation result;
  result.examples = static_cast<int64_t>(counts.examples);
  result.loss = counts.weight > 0.0 ? counts.loss / counts.weight : 0.0;
  result.accuracy = counts.answers > 0.0 ? counts.correct / counts.answers : 0.0;
  if (!loss.has_accuracy()) result.accuracy = kNone;
  if (loss.is_regression()) counts.regression.write_to(result);
  for (size_t i = 0; loss.has_label_lists() && i < kPrecisions.size(); ++i) {
    result.precisions[i] =
        counts.hits[i] / (counts.examples * static_cast<double>(kPrecisions[i].count));
  }
  if (loss.has_token_labels()) result.perplexity = std::exp(result.loss);
  result.bits_per_character = bits_per_character(result.loss, data);
  result.unknown_tokens = data.unknown_labels();
  result.top5_accuracy =
      loss.has_top5() && counts.answers > 0.0 ? counts.in_largest / counts.answers : kNone;
  return result;
}

void require_evaluation_fits(Module& model, const Dataset& data, int64_t batch_size) {
  require_fits(pieces_of(model, data, batch_size));
}

void try_evaluation(Module& model, const LossFunction& loss, const Dataset& data,
                    int64_t batch_size) {
  if (sparsifies_activations(model)) return;
  const EvaluationMode mode(model);
  const ExamplePieces pieces = pieces_of(model, data, batch_size);
  const std::vector<int64_t> indices = longest_examples(data, pieces.examples);
  naming_memory(pieces, [&] {
    Counts counts;
    count_piece(model, loss.for_evaluation(), data.gather(indices), pieces.rows, nullptr, counts);
  });
}

std::vector<std::pair<std::string, double>> other_results(const Evaluation& result) {
  std::vector<std::pair<std::string, double>> results;
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) results.emplace_back(name, value);
  };
  add("r2", result.r2);
  add("mae", result.mae);
  add("rmse", result.rmse);
  for (size_t i = 0; i < kPrecisions.size(); ++i) add(kPrecisions[i].name, result.precisions[i]);
  return results;
}

std::string precisions_in_words(const Evaluation& result) {
  std::string words;
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    if (std::isnan(result.precisions[i])) return "";
    words += fmt::format("{}P@{} {:.2f} %", words.empty() ? "" : "  ", kPrecisions[i].count,
                         100.0 * result.precisions[i]);
  }
  return words;
}

}  // namespace lacuna
