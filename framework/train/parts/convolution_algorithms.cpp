#include "lacuna/framework/train/parts/convolution_algorithms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/layers/convolutions/conv2d.h"

namespace lacuna {
namespace {

constexpr const char* kSection = "convolution_algorithms";

ConvolutionAlgorithm read_algorithm(const Config& node) {
  const auto name = node.as<std::string>();
  if (name == "direct") return ConvolutionAlgorithm::Direct;
  if (name == "winograd") return ConvolutionAlgorithm::Winograd;
  const std::string_view few = "winograd/";
  if (name.size() == few.size() + 1 && name.starts_with(few) && name.back() >= '1' &&
      name.back() < '0' + ConvolutionAlgorithm::kMostBlocks) {
    return {.is_winograd = true, .blocks = name.back() - '0'};
  }
  node.fail("direct, winograd, or winograd/N for N blocks of examples, 1 to 7");
}

ConvolutionAlgorithms read_algorithms(const Config& node) {
  const std::vector<Config> items = node.is_list() ? node.items() : std::vector<Config>{};
  if (items.size() != 3) {
    node.fail(
        "a list of three: of forward, input gradient and weight gradient, each direct or "
        "winograd");
  }
  return {read_algorithm(items[0]), read_algorithm(items[1]), read_algorithm(items[2])};
}

// Direct in place of winograd if there is none.
ConvolutionAlgorithms possible(const ConvolutionAlgorithms& wanted, const Conv2d& layer) {
  const Conv2d::Options& o = layer.options();
  const Extent one{1, 1};
  if (o.kernel == Extent{3, 3} && o.stride == one && o.dilation == one && o.groups == 1) {
    return wanted;
  }
  if (wanted == ConvolutionAlgorithms{}) return wanted;
  log_warning(
      fmt::format("{}.{}: winograd is for kernels of 3x3 with a stride, a dilation and groups of "
                  "1, and this layer has {}, {}, {} and {}; direct is used",
                  kSection, layer.path(), o.kernel.to_string(), o.stride.to_string(),
                  o.dilation.to_string(), o.groups));
  return {};
}

Config to_config(const ConvolutionAlgorithms& algorithms) {
  const auto name = [](ConvolutionAlgorithm a) {
    if (!a.is_winograd) return Config("direct");
    return Config(a == ConvolutionAlgorithm::Winograd ? "winograd"
                                                      : fmt::format("winograd/{}", a.blocks));
  };
  return Config::list({name(algorithms.forward), name(algorithms.input_gradient),
                       name(algorithms.weight_gradient)});
}

}  // namespace

void choose_algorithms(Config& config, Module& model, int64_t batch, Choice choice) {
  std::map<std::string, Conv2d*> convolutions;
  std::vector<std::string> names;
  for (Module* module : model.modules()) {
    auto* convolution = dynamic_cast<Conv2d*>(module);
    if (convolution == nullptr) continue;
    convolutions[module->path()] = convolution;
    names.push_back(module->path());
  }
  std::map<std::string, ConvolutionAlgorithms> given;
  const Config section = config.get(kSection);
  if (!section.is_null()) {
    if (!section.is_map()) section.fail("a map from paths of conv2d layers to algorithms");
    for (const auto& [path, value] : section.entries()) {
      if (!convolutions.contains(path)) {
        value.error("the model has no conv2d '" + path + "'" +
                    (names.empty() ? "" : "; " + suggest_name(path, names)));
      }
      given[path] = read_algorithms(value);
    }
  }
  config.erase(kSection);
  if (convolutions.empty()) return;
  Config written = Config::map();
  for (const std::string& path : names) {
    Conv2d& convolution = *convolutions[path];
    ConvolutionAlgorithms algorithms = convolution.algorithms();
    if (const auto found = given.find(path); found != given.end()) {
      algorithms = possible(found->second, convolution);
    } else if (convolution.weight()->convolution && choice == Choice::Measured) {
      ConvolutionShape shape = *convolution.weight()->convolution;
      shape.batch = batch;
      algorithms = fastest_algorithms(shape);
    }
    convolution.set_algorithms(algorithms);
    written.set(path, to_config(algorithms));
  }
  written.mark_read();
  config.set(kSection, written);
}

}  // namespace lacuna
