// The `lacuna` program with a dataset, a layer, an optimizer and an algorithm of a user's, by what
// is published alone. own_things_test.cpp runs every command on them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/extend.h"
#include "lacuna/lacuna.h"

using namespace lacuna;

namespace {

// Numbers in lines, three inputs and their class each; "?" stands for a class that is not known.
Examples read_rows(const std::string& path, bool has_classes) {
  std::ifstream file(path);
  if (!file) throw DataError(path + ": no such file");
  Examples examples{.example_shape = Shape{3}, .inputs = std::vector<float>()};
  float a = 0, b = 0, c = 0;
  for (std::string name; file >> a >> b >> c >> name;) {
    for (const float value : {a, b, c}) std::get<1>(examples.inputs).push_back(value);
    if (has_classes) examples.labels.push_back(std::stoll(name));
  }
  if (has_classes) examples.num_classes = 3;
  return examples;
}

std::shared_ptr<const Dataset> split(const Config& data, const char* name) {
  const std::filesystem::path folder = data.required<std::string>("folder");
  return std::make_shared<const ArrayDataset>(
      read_rows(folder / (name + std::string(".rows")), true));
}

DataSplits load_splits(const Config& data, uint64_t) {
  DataSplits splits;
  splits.train = split(data, "train");
  const auto skip = data.get<int64_t>("skip", 0);  // read after the file
  std::vector<int64_t> rest;
  for (int64_t i = skip; i < splits.train->size(); ++i) rest.push_back(i);
  splits.train = subset(splits.train, rest);
  splits.test = split(data, "test");
  data.get<std::string>("unit", "inch");
  return splits;
}

const bool has_rows = dataset_registry().add(
    "rows", "files of three numbers and a class a line",
    {.load = load_splits,
     .paths = {"folder"},
     .has_training_files =
         [](const Config& data) {
           return std::filesystem::exists(data.required<std::string>("folder") + "/train.rows");
         },
     .load_held_out =
         [](const Config& data, uint64_t, const KnownData&) {
           DataSplits splits;
           splits.test = split(data, "test");
           return splits;
         },
     .read_inputs = [](const std::string& path, const Config&,
                       const KnownData&) -> std::optional<Examples> {
       if (!path.ends_with(".rows")) return std::nullopt;
       return read_rows(path, false);
     },
     .split_keys = {"data.validation", "train.seed", "data.limit", "data.skip"},
     .late_keys = std::vector<std::string>{"skip", "unit"},
     .new_run_keys = {{"unit", "metre"}}});

// Two times what a linear layer gives.
class Twice final : public Module, public BatchUser {
 public:
  Twice(int64_t in, int64_t out, FanIn fan_in) : out_(out) {
    weight_ = register_parameter(
        "weight",
        std::make_shared<Parameter>(Shape{out, in},
                                    make_initializer(WeightInit::Default, fan_in.inputs(in), out)));
    weight_->use = WeightUse::Linear;
  }
  std::string_view type() const override { return "twice"; }
  Shape output_shape(const Shape& input) const override { return input.with_features(out_); }
  int64_t uses_per_weight(const Shape& example) const override { return example.batch(); }
  bool needs_batch() const override { return true; }
  bool mixes_examples() const override { return false; }

 protected:
  Variable forward(const Variable& input) override {
    const Variable once = linear(input, weight_, Variable());
    return add(once, once);
  }

 private:
  int64_t out_;
  ParameterPtr weight_;
};

std::string write_twice(OnnxGraph& graph, const Twice& layer, const std::string& x, const Shape&) {
  const std::string w = graph.parameter(*own_parameter(layer, "weight"));
  const std::string once = graph.add("Gemm", {x, w}, {{"transB", int64_t{1}}});
  return graph.add("Add", {once, once});
}

const bool has_twice = layer_registry().add(
    "twice", "two times a linear layer: outputs, init_fan_in",
    {.make = [](const Config& options, const Shape& input) -> std::unique_ptr<Module> {
       return std::make_unique<Twice>(input.features(), options.required<int64_t>("outputs"),
                                      read_fan_in(options, "init_fan_in"));
     },
     .has_fan_in = true,
     .outputs_key = "outputs",
     .onnx = onnx_form(write_twice)});

// Steps along the gradient, a state counted beside.
class Plain final : public Optimizer {
 public:
  Plain(std::vector<ParameterPtr> parameters, const OptimizerOptions& options)
      : Optimizer(std::move(parameters), options) {}
  std::string_view type() const override { return "plain"; }

 protected:
  std::vector<StateSlot> state_slots() const override { return {{.name = "way"}}; }
  void update(const Update& update) override {
    for (size_t i = 0; i < update.values.size(); ++i) {
      const float step = static_cast<float>(update.learning_rate) * update.gradient[i];
      update.values[i] -= step;
      update.states[0][i] += step;
    }
  }
};

const bool has_plain = optimizer_registry().add(
    "plain", "steps along the gradient",
    [](const Config& config, std::vector<ParameterPtr> parameters) -> std::unique_ptr<Optimizer> {
      OptimizerOptions options{.lr = Schedule(0.1)};
      read_optimizer_options(config, options);
      return std::make_unique<Plain>(std::move(parameters), options);
    });

// SET that grows the first of the places that are free.
class FirstFree final : public Set {
 public:
  using Set::Set;
  std::string_view type() const override { return "first_free"; }

 protected:
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override {
    return weight.selector().grow_maximum(rows_of(Tensor::full(weight.shape(), 1.0f)), count, kept);
  }
};

const bool has_first_free = algorithm_registry().add(
    "first_free", "SET that grows the first places",
    AlgorithmType{make_drop_grow<FirstFree>, "where the first places matter"});

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv); }
