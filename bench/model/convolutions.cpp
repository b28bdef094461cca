#include "model/convolutions.h"

#include <algorithm>
#include <utility>

#include "model/network.h"

namespace lacuna::bench {
namespace {

std::string work_name(const std::string& size, const char* opponent, Product product) {
  return size + "/" + opponent + "/" + to_string(product);
}

constexpr const char* kDirect = "direct";
constexpr const char* kAutomatic = "auto";

}  // namespace

ConvolutionSum::ConvolutionSum(const Module& model, int64_t batch,
                               std::span<const Product> products)
    : products_(products.begin(), products.end()) {
  for (const ParameterPtr& weight : convolution_weights(model)) {
    ConvolutionShape shape = weight->convolution.value();
    shape.batch = batch;
    const auto found = std::ranges::find_if(
        sizes_, [&](const Size& s) { return !s.is_first && s.workload.shape == shape; });
    if (found != sizes_.end()) {
      ++found->layers;
      continue;
    }
    Size& size = sizes_.emplace_back(
        Size{.workload = ConvolutionWorkload::random(shape, 0.0), .opponents = {}, .layers = 1});
    size.is_first = sizes_.size() == 1;
    size.opponents = make_convolution_opponents(size.workload);
    check(size.name() + ", onednn direct", *size.opponents.direct, size.workload);
    check(size.name() + ", onednn auto", *size.opponents.automatic, size.workload);
  }
}

std::vector<Work> ConvolutionSum::works() const {
  std::vector<Work> works;
  const auto prepare = [this] { release_results(); };
  for (const Size& size : sizes_) {
    for (const Product product : products_) {
      if (!size.has(product)) continue;
      ConvolutionContender &direct = *size.opponents.direct, &automatic = *size.opponents.automatic;
      works.push_back({work_name(size.name(), kDirect, product),
                       {[&direct, product] { direct.run(product); }},
                       prepare});
      works.push_back({work_name(size.name(), kAutomatic, product),
                       {[&automatic, product] { automatic.run(product); }},
                       prepare});
    }
  }
  return works;
}

double ConvolutionSum::best_ms(const std::map<std::string, std::vector<Timing>>& timings) const {
  double sum = 0.0;
  for (const Size& size : sizes_) {
    for (const Product product : products_) {
      if (!size.has(product)) continue;
      const auto ms = [&](const char* opponent) {
        return timings.at(work_name(size.name(), opponent, product))[0].median_ms;
      };
      sum += static_cast<double>(size.layers) * std::min(ms(kDirect), ms(kAutomatic));
    }
  }
  return sum;
}

std::string ConvolutionSum::Size::name() const {
  const ConvolutionShape& s = workload.shape;
  return s.window.kernel.to_string() + " " + s.weight_shape().to_string() + " stride " +
         s.window.stride.to_string() + " on " + s.input_shape().to_string() +
         (is_first ? ", first" : "");
}

void ConvolutionSum::release_results() const {
  for (const Size& size : sizes_) {
    size.opponents.direct->release_results();
    size.opponents.automatic->release_results();
  }
}

}  // namespace lacuna::bench
