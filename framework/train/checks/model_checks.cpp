#include "lacuna/framework/train/checks/model_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/first_batch.hpp"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/token_mixer.h"

namespace lacuna {
namespace {

// What may be done where a model's output is not what the loss compares with the data.
std::string remedy(const Dataset& data, const Shape& output, const Shape& wanted, bool is_preset) {
  if (output.rank() == wanted.rank()) {
    if (!is_preset || wanted.rank() != 1) return "";
    return fmt::format(
        " (set num_labels: {} in the preset; the head of a file then differs, and init_from can "
        "skip it)",
        wanted[0]);
  }
  if (data.vocabulary_size() == 0) {
    return output.rank() < wanted.rank()
               ? ""
               : " (a flatten layer makes one dimension of an example's several)";
  }
  if (output.rank() > wanted.rank()) {
    return " (it returns outputs per token, but the data has one label per sentence: the presets "
           "bert and distilbert need head: classification, or data.mask_fraction hides tokens to "
           "be predicted)";
  }
  return data.token_label() == TokenLabel::Next
             ? " (it returns outputs per sentence, but the data's labels are the next tokens, "
               "which the presets gpt2 and llama predict)"
             : " (it returns outputs per sentence, but the data has a label for each token: the "
               "presets bert and distilbert need head: masked_lm, or data.mask_fraction is left "
               "out)";
}

std::string behind(const ModelLayers& layers) {
  return layers.made_by.empty() ? "" : "; within " + layers.made_by;
}

// The layer of that path; null if there is none.
const ModelLayer* find_layer(std::span<const ModelLayer> layers, const std::string& path) {
  for (const ModelLayer& layer : layers) {
    if (layer.path == path) return &layer;
    for (const auto* group : {&layer.layers, &layer.shortcut}) {
      if (const ModelLayer* found = find_layer(*group, path)) return found;
    }
  }
  return nullptr;
}

// The first layer that is not a group and that an error names; null where it names none.
const ModelLayer* named_layer(std::span<const ModelLayer> layers, const std::string& message) {
  for (const ModelLayer& layer : layers) {
    if (message.find("layer '" + layer.path + "'") != std::string::npos) return &layer;
    for (const auto* group : {&layer.layers, &layer.shortcut}) {
      if (const ModelLayer* found = named_layer(*group, message)) return found;
    }
  }
  return nullptr;
}

// Modules that let tokens see each other, each with the base class that describes how.
using Mixers = std::vector<std::pair<const Module*, const TokenMixer*>>;

Mixers token_mixers(const Module& module) {
  Mixers all;
  if (const auto* mixer = dynamic_cast<const TokenMixer*>(&module))
    all.emplace_back(&module, mixer);
  for (const auto& [name, child] : module.children()) {
    std::ranges::copy(token_mixers(*child), std::back_inserter(all));
  }
  return all;
}

}  // namespace

void require_output_fits(const Sequential& model, const ModelLayers& layers, const Dataset& data,
                         const WantedOutput& wanted) {
  const Shape output = model.output_shape(data.example_shape());
  if (output == wanted.shape) return;
  const auto [name, last] = model.children().back();
  layers.layers.back().node.error(fmt::format(
      "layer '{}' ({}), the last one, gives shape {} per example; the data has {} {}, so it must "
      "give {}{}{}",
      name, last->type(), output.to_string(), wanted.values, wanted.values_are,
      wanted.shape.to_string(), remedy(data, output, wanted.shape, !layers.made_by.empty()),
      behind(layers)));
}

void require_sparse_inputs_fit(Sequential& model, const ModelLayers& layers, const Dataset& data) {
  const bool is_sparse = gives_tensor(data, kFeatureIds);
  int64_t readers = 0;
  for (const Module* module : model.modules()) {
    const auto* user = dynamic_cast<const NamedInputUser*>(module);
    if (user == nullptr || user->requested_input().name != kFeatureIds) continue;
    ++readers;
    const ModelLayer* layer = find_layer(layers.layers, module->path());
    const Config& node = layer == nullptr ? layers.node : layer->node;
    if (!is_sparse) {
      node.error(
          fmt::format("layer '{}' ({}) is for sparse examples, which data of type "
                      "labelled_sparse has; give linear here",
                      module->path(), module->type()));
    }
    if (module != model.chain().modules().front()) {
      node.error(
          fmt::format("layer '{}' ({}) reads the features of examples, so that it must be "
                      "the first layer",
                      module->path(), module->type()));
    }
  }
  if (!is_sparse || readers > 0) return;
  layers.layers.front().node.error(
      "the data has sparse examples, so the first layer must be an embedding_bag (with the keys of "
      "linear)");
}

std::optional<AttentionMisfit> find_attention_misfit(const Module& model, const Dataset& data) {
  const Mixers all = token_mixers(model);
  const auto is_causal = [](const auto& layer) { return layer.second->is_causal(); };
  if (data.token_label() == TokenLabel::Next) {
    const auto found = std::ranges::find_if_not(all, is_causal);
    if (found == all.end()) return std::nullopt;
    return AttentionMisfit{
        found->first->path(), std::string(found->first->type()),
        "is not causal, but the labels are the next tokens, which each token would see: nothing "
        "would be learned. Set causal: true (as gpt2 and llama do), or data.mask_fraction: 0.15 "
        "(for bert and distilbert with head: masked_lm)"};
  }
  if (data.token_label() == TokenLabel::Hidden && !all.empty() &&
      std::ranges::all_of(all, is_causal)) {
    return AttentionMisfit{
        all.front().first->path(), std::string(all.front().first->type()),
        "is causal, like all attention of the model, so tokens hidden by data.mask_fraction would "
        "be predicted only from those before them; leave out data.mask_fraction, or use attention "
        "that is not causal (bert or distilbert with head: masked_lm)"};
  }
  return std::nullopt;
}

void require_attention_fits(const Module& model, const ModelLayers& layers, const Dataset& data) {
  const auto misfit = find_attention_misfit(model, data);
  if (!misfit) return;
  const ModelLayer* layer = find_layer(layers.layers, misfit->layer);
  (layer == nullptr ? layers.node : layer->node)
      .error(fmt::format("layer '{}' ({}) {}{}", misfit->layer, misfit->type, misfit->reason,
                         behind(layers)));
}

namespace {

// A dataset's example, and how many tokens it has.
struct Sentence {
  const Dataset* data = nullptr;
  int64_t index = 0;
  int64_t tokens = 0;
};

struct Extremes {
  Sentence shortest, longest;  // without data: there are no lengths
};

Extremes extremes_of(const DataSplits& splits) {
  Extremes found;
  for (const auto& split : {splits.train, splits.validation, splits.test}) {
    if (split == nullptr || split->vocabulary_size() == 0) continue;
    const std::span<const int32_t> lengths = split->lengths();
    for (size_t i = 0; i < lengths.size(); ++i) {
      const Sentence here{split.get(), static_cast<int64_t>(i), lengths[i]};
      if (found.shortest.data == nullptr || here.tokens < found.shortest.tokens) {
        found.shortest = here;
      }
      if (found.longest.data == nullptr || here.tokens > found.longest.tokens) found.longest = here;
    }
  }
  return found;
}

// At the layer that is named, or at the one of the outermost that was run.
[[noreturn]] void refuse(const ModelLayers& layers, size_t outermost, const std::string& what) {
  const ModelLayer* named = named_layer(layers.layers, what);
  const ModelLayer& layer = named == nullptr ? layers.layers[outermost] : *named;
  layer.node.error(fmt::format(
      "{} (sentences differ in length, and batches are padded to their longest: a layer must take "
      "any length; mean_pool and select_token make one vector of any){}",
      what, behind(layers)));
}

// Whether what layers make of sentences of two lengths may differ: in the number of tokens alone.
bool may_differ(const Shape& a, const Shape& b) {
  if (a == b) return true;
  return a.rank() == b.rank() && a.rank() > 1 &&
         std::ranges::equal(a.sizes().subspan(1), b.sizes().subspan(1));
}

// The model is built for sentences of `longest` tokens.
void require_shapes_fit(const Sequential& model, const ModelLayers& layers, int64_t longest,
                        int64_t tokens) {
  Shape built{longest}, other{tokens};
  size_t place = 0;
  for (const auto& [name, layer] : model.children()) {
    built = layer->output_shape(built);
    try {
      other = layer->output_shape(other);
    } catch (const ShapeError& error) {
      refuse(layers, place, error.what());
    }
    if (!may_differ(built, other)) {
      refuse(
          layers, place,
          fmt::format(
              "layer '{}' ({}) gives shape {} for a sentence of {} tokens, and {} for one of {}",
              layer->path(), layer->type(), other.to_string(), tokens, built.to_string(), longest));
    }
    ++place;
  }
}

Batch two_sentences(const Sentence& shorter, const Sentence& longer) {
  const std::vector<int64_t> indices{shorter.index, longer.index};
  return shorter.data->gather(std::span(indices).first(
      shorter.data == longer.data && shorter.index != longer.index ? 2 : 1));
}

void require_batch_fits(Sequential& model, const ModelLayers& layers, const Batch& batch) {
  const NamedInputs names(batch.named);
  Variable value = token_ids(batch.named.at("input_ids"));
  size_t place = 0;
  for (const auto& [name, layer] : model.children()) {
    try {
      value = (*layer)(value);
    } catch (const ShapeError& error) {
      refuse(layers, place, error.what());
    } catch (const DataError& error) {
      refuse(layers, place, error.what());
    }
    ++place;
  }
}

}  // namespace

void require_lengths_fit(const Sequential& model, const ModelLayers& layers,
                         const DataSplits& data) {
  const auto [shortest, longest] = extremes_of(data);
  if (shortest.data == nullptr) return;
  const int64_t most = data.train->example_shape()[0];
  for (const int64_t tokens : {shortest.tokens, longest.tokens}) {
    if (tokens != most) require_shapes_fit(model, layers, most, tokens);
  }
}

void require_sentences_fit(Sequential& model, const ModelLayers& layers, const DataSplits& data) {
  const auto [shortest, longest] = extremes_of(data);
  if (shortest.data == nullptr) return;
  const EvaluationMode mode(model);
  require_batch_fits(model, layers, shortest.data->gather(std::span(&shortest.index, 1)));
  require_batch_fits(model, layers, two_sentences(longest, shortest));
}

namespace {

struct StoredParameter {
  ParameterPtr parameter;
  const Module* module = nullptr;
  double bytes = 0.0;  // an integer of 64 bits may be too small
};

double value_bytes(const Parameter& parameter) {
  return static_cast<double>(parameter.pattern()->stored_size()) * sizeof(float);
}

std::vector<StoredParameter> stored_parameters(Module& model, const BytesOfParameter& bytes) {
  std::vector<StoredParameter> all;
  for (const Module* module : model.modules()) {
    for (const auto& [name, parameter] : module->own_parameters()) {
      all.push_back({parameter, module, bytes(*parameter)});
    }
  }
  return all;
}

std::string megabytes(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

std::string in_words(const Parameter& parameter, std::string_view name, std::string_view path,
                     std::string_view type) {
  return fmt::format("layer '{}' ({}): parameter '{}' {} with {} values", path, type, name,
                     parameter.shape().to_string(), parameter.pattern()->stored_size());
}

std::string in_words(const StoredParameter& stored) {
  return in_words(*stored.parameter, stored.parameter->name(), stored.module->path(),
                  stored.module->type());
}

// Where the layer of a module is written: itself, or the one that has it for a part.
const Config& node_of(const ModelLayers& layers, std::string path) {
  while (!path.empty()) {
    if (const ModelLayer* layer = find_layer(layers.layers, path)) return layer->node;
    const size_t dot = path.rfind('.');
    path.resize(dot == std::string::npos ? 0 : dot);
  }
  return layers.node;
}

[[noreturn]] void refuse_size(const ModelLayers& layers, const Config& node,
                              const std::string& what, int64_t memory) {
  throw MemoryError(
      layers.as_written(fmt::format("{}: {}, and there are {} in all{}", node.where(), what,
                                    megabytes(static_cast<double>(memory)), behind(layers))));
}

template <class InWords>
void require_one_fits(const Parameter& parameter, const ModelLayers& layers, const Config& node,
                      int64_t memory, const InWords& words) {
  const double bytes = value_bytes(parameter);
  if (bytes <= static_cast<double>(memory)) return;
  refuse_size(layers, node,
              fmt::format("{}: out of memory: {} more were requested", words(), megabytes(bytes)),
              memory);
}

void require_sum_fits(const std::vector<StoredParameter>& all, const ModelLayers& layers,
                      const char* what, int64_t memory) {
  double sum = 0.0;
  for (const StoredParameter& stored : all) sum += stored.bytes;
  if (sum <= static_cast<double>(memory)) return;
  const auto largest = std::ranges::max_element(all, {}, &StoredParameter::bytes);
  refuse_size(
      layers, layers.node,
      fmt::format("out of memory: {} of {} parameters take {} (the most in {}: {})", what,
                  all.size(), megabytes(sum), in_words(*largest), megabytes(largest->bytes)),
      memory);
}

}  // namespace

void require_layer_fits(const Module& module, const ModelLayer& layer, const ModelLayers& layers,
                        int64_t memory) {
  for (const auto& [name, parameter] : module.own_parameters()) {
    require_one_fits(*parameter, layers, layer.node, memory, [&, &own = name, &one = *parameter] {
      return in_words(one, layer.path + "." + own, layer.path, module.type());
    });
  }
}

void require_values_fit(Module& model, const ModelLayers& layers, int64_t memory) {
  const std::vector<StoredParameter> all = stored_parameters(model, value_bytes);
  for (const StoredParameter& stored : all) {
    require_one_fits(*stored.parameter, layers, node_of(layers, stored.module->path()), memory,
                     [&] { return in_words(stored); });
  }
  require_sum_fits(all, layers, "the values", memory);
}

void require_training_fits(Module& model, const ModelLayers& layers, const BytesOfParameter& states,
                           int64_t memory) {
  const auto bytes = [&](const Parameter& parameter) {
    const double values = value_bytes(parameter);
    return parameter.trainable ? 2.0 * values + states(parameter) : values;
  };
  require_sum_fits(stored_parameters(model, bytes), layers,
                   "values, gradients and optimizer states", memory);
}

}  // namespace lacuna
