// Gives each fuzz target the inputs of its corpus, with any compiler: what fuzzing found stays
// mended. usage: fuzz_corpora FOLDER TARGET
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz_targets.inc"

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string_view name = arguments[2];
  const auto found = std::ranges::find(kTargets, name, [](const auto& t) { return t.first; });
  if (found == std::end(kTargets)) {
    std::fprintf(stderr, "no target is called %s\n", arguments[2]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    std::printf("%s\n", path.c_str());  // the last line names the input that ends the process
    std::fflush(stdout);
    found->second(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  if (paths.empty()) std::fprintf(stderr, "the corpus is empty\n");
  return paths.empty() ? 1 : 0;
}
