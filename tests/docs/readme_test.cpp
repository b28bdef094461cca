// The README and the other documents: what they show exists, and builds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "docs/documents.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna::readme_test {
namespace {

namespace fs = std::filesystem;

std::string whole_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Readme, YamlBuilds) {
  for (const auto& block : documents::read_blocks("README.md", "yaml")) {
    Config config = parse_yaml(block.text, "README.md");
    config.set_path("data.train_size", 200);
    config.set_path("data.test_size", 50);
    config.set_path("train.epochs", 1000);  // updates of masks must fall within the run
    EXPECT_NO_THROW(build_experiment(config)) << "README.md:" << block.line;
  }
}

TEST(Guides, ShowCodeThatStandsInAnExample) {
  std::vector<std::string> sources;
  for (const auto& entry : fs::directory_iterator(documents::source_path("examples"))) {
    if (entry.is_regular_file()) sources.push_back(whole_file(entry.path()));
  }
  for (const auto& [document, least] : {std::pair{"docs/guides/cpp.md", 4u},
                                        {"docs/guides/interop.md", 2u},
                                        {"docs/guides/pruning.md", 1u}}) {
    const auto blocks = documents::read_blocks(document, "cpp");
    EXPECT_GE(blocks.size(), least) << document;
    for (const auto& block : blocks) {
      EXPECT_THAT(sources, testing::Contains(testing::HasSubstr(block.text)))
          << document << ":" << block.line;
    }
  }
}

// Targets of [text](target), but for addresses, places within a page, and lambdas in code.
std::vector<std::string> links(const std::string& line) {
  std::vector<std::string> targets;
  for (size_t begin = line.find("]("); begin != std::string::npos;
       begin = line.find("](", begin + 2)) {
    const std::string target = line.substr(begin + 2, line.find(')', begin) - begin - 2);
    const bool is_code = target.find(' ') != std::string::npos;
    const bool is_elsewhere = target.starts_with("#") || target.starts_with("http");
    if (!is_code && !is_elsewhere) targets.push_back(target);
  }
  return targets;
}

std::vector<std::string> all_documents() {
  std::vector<std::string> documents = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md",
                                        "SECURITY.md"};
  const fs::path docs = documents::source_path("docs");
  for (const auto& entry : fs::recursive_directory_iterator(docs)) {
    if (entry.path().extension() == ".md") {
      documents.push_back("docs/" + fs::relative(entry.path(), docs).string());
    }
  }
  return documents;
}

TEST(Documents, LinkToFilesThatExist) {
  for (const std::string& document : all_documents()) {
    const fs::path folder = fs::path(documents::source_path(document)).parent_path();
    for (const std::string& line : documents::read_lines(document)) {
      for (const std::string& target : links(line)) {
        const std::string file = target.substr(0, target.find('#'));
        EXPECT_TRUE(fs::exists(folder / file)) << document << " links to " << target;
      }
    }
  }
}

// The text of a line without its code spans, of which the last may be unclosed.
std::string without_code(const std::string& line) {
  std::string text;
  bool is_code = false;
  for (const char c : line) {
    if (c == '`') is_code = !is_code;
    if (!is_code && c != '`') text += c;
  }
  return text;
}

// Otherwise the generator of the site drops the rest of the paragraph.
TEST(Documents, EndCodeAndLinksOnTheLineWhereTheyBegin) {
  for (const std::string& document : all_documents()) {
    bool is_block = false, is_open = false;  // a bracket of the line before
    int number = 0;
    for (const std::string& line : documents::read_lines(document)) {
      ++number;
      const std::string begin = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      const bool is_fence = begin.starts_with("```");
      if (is_fence) is_block = !is_block;
      if (is_block || is_fence || begin.starts_with('|') || line.starts_with("    ")) continue;
      EXPECT_EQ(std::ranges::count(line, '`') % 2, 0) << document << ":" << number << ": " << line;
      const std::string text = without_code(line);
      const size_t open = text.rfind('['), target = text.rfind("](");
      const bool ends_link = is_open && text.substr(0, text.find('[')).find("](") != text.npos;
      const bool is_cut = target != text.npos && text.find(')', target) == text.npos;
      EXPECT_FALSE(ends_link || is_cut) << document << ":" << number << ": " << line;
      is_open = open != text.npos && text.find(']', open) == text.npos;
    }
  }
}

TEST(Documents, AreAllInTheIndex) {
  std::set<fs::path> listed;
  for (const std::string& line : documents::read_lines("docs/README.md")) {
    for (const std::string& target : links(line))
      listed.insert(fs::path(target).lexically_normal());
  }
  const fs::path docs = documents::source_path("docs");
  for (const auto& entry : fs::recursive_directory_iterator(docs)) {
    const fs::path page = fs::relative(entry.path(), docs);
    if (page.extension() != ".md" || page == "README.md") continue;
    EXPECT_TRUE(listed.contains(page)) << page << " is not in docs/README.md";
  }
}

// Words in backquotes that begin with a folder of the sources.
TEST(Documents, NameSourceFilesThatExist) {
  for (const char* document : {"README.md", "docs/development/training-step.md"}) {
    for (const std::string& line : documents::read_lines(document)) {
      for (size_t begin = line.find('`'); begin != std::string::npos;) {
        const size_t end = line.find('`', begin + 1);
        if (end == std::string::npos) break;
        const std::string word = line.substr(begin + 1, end - begin - 1);
        begin = line.find('`', end + 1);
        const bool is_path = word.starts_with("framework/") || word.starts_with("layers/") ||
                             word.starts_with("optimizers/") || word.starts_with("sparsity/");
        if (!is_path) continue;
        EXPECT_TRUE(fs::exists(documents::source_path(word))) << document << " names " << word;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::readme_test
