#include "lacuna/framework/report/styles.hpp"

#include <fmt/core.h>

#include <iterator>

namespace lacuna {
namespace {

// Okabe and Ito's colours, which the colour-blind tell apart, without the pale yellow.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#b07900", "#56b4e9", "#333333", "#8f4fd0"};
constexpr const char* kDashes[] = {"",    "7 3",      "2 3", "11 3 2 3",    "15 5", "5 2 1 2 1 2",
                                   "1 4", "11 2 4 2", "3 7", "15 3 3 3 3 3"};

}  // namespace

CurveStyle style_of(int index) {
  constexpr int kOfColours = std::size(kColours), kOfDashes = std::size(kDashes);
  return {.colour = index % kOfColours, .dash = index / kOfColours % kOfDashes};
}

const char* colour_of(int index) {
  return kColours[static_cast<size_t>(index) % std::size(kColours)];
}

const char* dashes_of(int index) {
  return kDashes[static_cast<size_t>(index) % std::size(kDashes)];
}

std::string style_attributes(const CurveStyle& style) {
  const std::string dashes = dashes_of(style.dash);
  return fmt::format("class=\"curve c{}\"{}", style.colour,
                     dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"");
}

std::string swatch(const CurveStyle& style) {
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 30 8\" aria-hidden=\"true\"><line {} x1=\"0\" x2=\"30\" "
      "y1=\"4\" y2=\"4\"/></svg>",
      style_attributes(style));
}

}  // namespace lacuna
