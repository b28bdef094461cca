// Rules of the house over all files: foreign headers, flags, paths, first lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

#include "structure/rooms.h"
#include "structure/sources.h"

namespace lacuna::structure {
namespace {

// Foreign headers, and the only places that may know them.
const std::map<std::string, std::vector<std::string>>& foreign_headers() {
  static const std::map<std::string, std::vector<std::string>> table = {
      {"yaml-cpp/", {"framework/io/yaml.cpp"}},
      {"spdlog/", {"framework/io/log.cpp"}},
      {"CLI/",
       {"framework/program/command_help.cpp", "framework/program/command_options.cpp",
        "framework/program/program.cpp"}},
      {"nlohmann/",
       {"framework/io/storage/safetensors_header.cpp", "framework/io/storage/safetensors_index.cpp",
        "framework/records/json_text.cpp", "framework/text/tokenizer_json.cpp"}},
      {"onnx/",
       {"framework/onnx/model_file.cpp", "framework/onnx/int8_nodes.cpp",
        "framework/io/storage/onnx_file.cpp"}},
      {"hdf5.h", {"framework/io/hdf5/hdf5_internal.hpp"}},
      {"zlib.h",
       {"framework/data/formats/byte_reader.cpp", "framework/io/storage/checkpoint_seal.cpp",
        "framework/io/storage/zip_member.cpp", "framework/records/png_image.cpp"}},
      {"dnnl",
       {"framework/kernels/dense/convolution_onednn.cpp", "framework/kernels/dense/gemm",
        "framework/kernels/instruction_set.cpp"}},
      {"Eigen/",
       {"framework/kernels/dense/convolution_unfolded.cpp", "framework/kernels/dense/gemm"}},
      {"png.h", {"framework/data/formats/png_image.cpp"}},
      {"jpeglib.h", {"framework/data/formats/jpeg_image.cpp"}},
      {"jerror.h", {"framework/data/formats/jpeg_image.cpp"}},
      {"webp/", {"framework/data/formats/webp_image.cpp"}},
      {"gif_lib.h", {"framework/data/formats/gif_image.cpp"}},
      {"hwy/", {"framework/kernels/", "framework/program/main.cpp"}},
      {"omp.h", {"framework/core/parallel.cpp"}},
      {"mpi.h", {"framework/distributed/mpi/mpi_communicator.cpp"}},
      {"cxxabi.h", {"framework/program/process_options.cpp"}},
  };
  return table;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool is_standard(const std::string& header) {
  return header.find_first_of("./") == std::string::npos && header != "Eigen";
}

// Of the operating system and the processor: in .cpp files only.
bool is_system(const std::string& header) {
  static const std::set<std::string> headers = {"unistd.h",  "fcntl.h",     "fnmatch.h",
                                                "pthread.h", "xmmintrin.h", "immintrin.h",
                                                "cpuid.h",   "dlfcn.h"};
  return headers.contains(header) || header.starts_with("sys/");
}

TEST(HouseRules, HeadersIncludeNothingForeign) {
  for (const SourceFile& file : library_sources()) {
    if (!file.ends_with(".h")) continue;
    for (const Include& include : includes(file)) {
      EXPECT_TRUE((include.is_ours && include.path.ends_with(".h")) || is_standard(include.path))
          << at(file, include.line) << "a public header includes " << include.path;
    }
  }
}

TEST(HouseRules, ForeignHeadersStayInTheirFiles) {
  for (const SourceFile& file : library_sources()) {
    for (const Include& include : includes(file)) {
      if (include.is_ours || is_standard(include.path) || is_system(include.path)) continue;
      bool is_allowed = false;
      for (const auto& [header, places] : foreign_headers()) {
        if (!include.path.starts_with(header)) continue;
        for (const std::string& place : places) is_allowed |= file.path.starts_with(place);
      }
      // Messages are formatted everywhere, and no header needs it.
      is_allowed |= include.path.starts_with("fmt/") && file.ends_with(".cpp");
      EXPECT_TRUE(is_allowed) << at(file, include.line) << include.path
                              << " does not belong here; see foreign_headers() of this test";
    }
  }
}

// The kernels' shared loops are there for all their rooms.
TEST(HouseRules, PartsOfSourcesAreIncludedInTheirRoomOnly) {
  const auto rooms = rooms_by_path();
  for (const SourceFile& file : library_sources()) {
    for (const Include& include : includes(file)) {
      if (!include.is_ours || !include.path.ends_with(".inc")) continue;
      const std::string theirs = room_of(include.path, rooms);
      const bool is_shared = theirs == "framework/kernels/simd";
      EXPECT_TRUE(!file.ends_with(".h") && (is_shared || room_of(file.path, rooms) == theirs))
          << at(file, include.line) << include.path;
    }
  }
}

// Two types of one name are one to the linker, which takes either one's functions for both.
TEST(HouseRules, NoTwoTypesHaveOneName) {
  const std::regex opens(R"(^(inline )?namespace ?([A-Za-z_:]*) ?\{.*)");
  const std::regex closes(R"(^\}  // namespace.*)");
  const std::regex defines(
      R"(^(template <.*> )?(struct|class|union|enum class) ([A-Za-z_0-9]+)( final)?( :[^:].*)? \{.*)");
  std::map<std::string, std::set<std::string>> files_by_type;
  for (const SourceFile& file : library_sources()) {
    std::vector<std::string> namespaces;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_match(line, match, opens)) {
        namespaces.push_back(match[2]);
      } else if (std::regex_match(line, closes) && !namespaces.empty()) {
        namespaces.pop_back();
      } else if (std::regex_match(line, match, defines)) {
        std::string name;
        bool is_local = false;
        for (const std::string& each : namespaces) {
          is_local = is_local || each.empty();
          name += each + "::";
        }
        if (!is_local) files_by_type[name + match[3].str()].insert(file.path);
      }
    }
  }
  EXPECT_GT(files_by_type.size(), 300u);
  for (const auto& [type, files] : files_by_type) {
    EXPECT_EQ(files.size(), 1u) << type << ": " << testing::PrintToString(files);
  }
}

// Words that make English read as translated.
TEST(HouseRules, TextsAreInCurrentEnglish) {
  const std::regex word(
      R"(\b(is told|are told|speaks of|beside|besides|hangs on|goes by|reckons|anew|in the end|dear)\b)",
      std::regex::icase);
  for (const SourceFile& file :
       read_sources({"framework", "layers", "optimizers", "sparsity", "bench", "python/lacuna",
                     "python/src", "scripts", "configs", "examples", "docs", "README.md",
                     "CONTRIBUTING.md", "SECURITY.md"})) {
    const bool is_read =
        std::ranges::any_of(std::array{".md", ".cpp", ".h", ".hpp", ".inc", ".py", ".sh", ".yaml"},
                            [&](const char* end) { return file.ends_with(end); });
    if (!is_read || file.ends_with("performance-log.md")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch found;
      EXPECT_FALSE(std::regex_search(file.lines[i], found, word))
          << at(file, static_cast<int>(i) + 1) << found.str();
    }
  }
}

TEST(HouseRules, OpenMpIsInOneFile) {
  for (const SourceFile& file : library_sources()) {
    if (file.path == "framework/core/parallel.cpp") continue;
    for (const std::string& line : file.lines) {
      EXPECT_EQ(line.find("#pragma omp"), std::string::npos) << file.path << ": " << line;
    }
  }
}

TEST(HouseRules, FilesBeginWithASentenceAndHeadersWithAGuard) {
  std::vector<SourceFile> files = library_sources();
  for (const SourceFile& test : read_sources({"tests", "bench", "examples", "fuzz/targets"}))
    files.push_back(test);
  for (const SourceFile& file : files) {
    if (!file.ends_with(".h") && !file.ends_with(".hpp")) continue;
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_THAT(file.lines.front(), testing::StartsWith("// ")) << file.path;
    EXPECT_THAT(file.lines, testing::Contains("#pragma once")) << file.path;
  }
}

TEST(HouseRules, NoFlagsThatTieTheLibraryToAMachineOrBendArithmetic) {
  const std::vector<std::string> forbidden = {"-march=", "-mtune=", "fast-math", "-Ofast"};
  for (const SourceFile& file :
       read_sources({"CMakeLists.txt", "CMakePresets.json", "cmake", "bench", "examples", "scripts",
                     "tests/CMakeLists.txt", "tests/consumer", ".ci"})) {
    for (const std::string& line : file.lines) {
      for (const std::string& flag : forbidden) {
        EXPECT_EQ(line.find(flag), std::string::npos) << file.path << ": " << line;
      }
    }
  }
}

TEST(HouseRules, CommentsNameHeadersThatExist) {
  const std::vector<SourceFile> files = library_sources();
  std::set<std::string> names{"jpeglib.h", "jerror.h", "record_writer.h"};  // not ours
  for (const SourceFile& file : files) names.insert(name_of(file.path));
  const std::regex header("[a-z0-9_/]+\\.(h|hpp)\\b");
  for (const SourceFile& file : files) {
    for (const std::string& line : file.lines) {
      const size_t comment = line.find("//");
      if (comment == std::string::npos) continue;
      const std::string text = line.substr(comment);
      for (std::sregex_iterator one(text.begin(), text.end(), header), end; one != end; ++one) {
        EXPECT_TRUE(names.contains(name_of(one->str()))) << file.path << ": " << line;
      }
    }
  }
}

// LACUNA_UNITY compiles several of them as one source, but for those of these folders.
TEST(HouseRules, EachTestFileHasANamespaceOfItsOwn) {
  const std::set<std::string> compiled_alone = {"tests/bench", "tests/structure"};
  int count = 0;
  for (const SourceFile& file : read_sources({"tests"})) {
    if (!file.ends_with("_test.cpp") || compiled_alone.contains(file.folder())) continue;
    ++count;
    const std::string name = std::filesystem::path(file.path).stem().string();
    EXPECT_THAT(file.lines, testing::Contains("namespace lacuna::" + name + " {")) << file.path;
  }
  EXPECT_GT(count, 400);
}

// Such a file is what a script wrote that took an option for a file's name.
TEST(HouseRules, NoFileIsNamedLikeAnOption) {
  for (const auto& entry : std::filesystem::directory_iterator(kSourceFolder)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("-")) << entry.path();
  }
}

TEST(HouseRules, NoPathsOfAMachineAndNothingLeftToDo) {
  // Put together here, so that this file does not hold them.
  std::vector<std::string> forbidden;
  for (const char* folder : {"work", "home", "root", "Users"}) {
    forbidden.push_back(std::string("/") + folder + "/");
  }
  forbidden.push_back(std::string("TO") + "DO");
  forbidden.push_back(std::string("FIX") + "ME");
  const std::set<std::string> binary = {".png", ".h5", ".gz", ".safetensors"};
  for (const SourceFile& file : read_sources({"framework",
                                              "layers",
                                              "optimizers",
                                              "sparsity",
                                              "tests",
                                              "bench",
                                              "examples",
                                              "cmake",
                                              "fuzz/targets",
                                              "fuzz/CMakeLists.txt",
                                              "fuzz/input.h",
                                              "fuzz/make_seeds.cpp",
                                              "configs",
                                              "docs",
                                              "scripts",
                                              ".ci",
                                              "README.md",
                                              "CHANGELOG.md",
                                              "CITATION.cff",
                                              "CONTRIBUTING.md",
                                              "SECURITY.md",
                                              "CMakeLists.txt",
                                              "CMakePresets.json",
                                              ".gitignore",
                                              ".clang-format",
                                              ".clang-tidy"})) {
    if (binary.contains(std::filesystem::path(file.path).extension().string())) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& text : forbidden) {
        EXPECT_EQ(file.lines[i].find(text), std::string::npos)
            << at(file, static_cast<int>(i) + 1) << file.lines[i];
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::structure
