#include "lacuna/framework/layouts/density_limits.h"

namespace lacuna {
namespace {

constexpr std::string_view kIn = " in ", kOneStep = ", for one step";

}  // namespace

std::string DensityLimitKey::to_string() const {
  const bool is_one_step = lifetime == PatternLifetime::OneStep;
  if (layout == csr_layout().name() && !is_one_step) return parameter;
  return parameter + std::string(kIn) + layout + std::string(is_one_step ? kOneStep : "");
}

DensityLimitKey DensityLimitKey::parse(std::string_view text) {
  const size_t in = text.find(kIn);
  DensityLimitKey key{.parameter = std::string(text.substr(0, in))};
  if (in == std::string_view::npos) return key;
  std::string_view layout = text.substr(in + kIn.size());
  if (layout.ends_with(kOneStep)) {
    layout.remove_suffix(kOneStep.size());
    key.lifetime = PatternLifetime::OneStep;
  }
  key.layout = layout;
  return key;
}

}  // namespace lacuna
