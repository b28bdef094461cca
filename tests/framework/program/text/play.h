// A text to train small language models on.
#pragma once

#include <string>

namespace lacuna {

/// Sixty lines of 42 characters.
inline std::string play() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be, or not to be: that is the question\n";
  return text;
}

}  // namespace lacuna
