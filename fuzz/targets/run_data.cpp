// What report and compare read of a run: metrics.jsonl, summary.json and config.yaml, the parts of
// the input between bytes 0xFF.
#include "lacuna/framework/report/run_data.hpp"

#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/page.hpp"
#include "lacuna/framework/report/run_table.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

namespace {

void write(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  fuzz::require(file != nullptr, "a file of the run cannot be written");
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
}

struct Folder {
  fuzz::ScratchFile place{"run"};
  Folder() { std::filesystem::create_directories(place.path()); }
  ~Folder() { std::filesystem::remove_all(place.path()); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string& run = folder.place.path();
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
  write(run + "/metrics.jsonl", parts[0]);
  write(run + "/summary.json", parts[1]);
  write(run + "/config.yaml", parts[2]);
  fuzz::answer([&] {
    const std::vector<RunData> runs = {read_run(run, 50)};
    const std::vector<RunResult> results = sorted_by_result({result_of(runs[0])});
    fuzz::require(parse_json(to_json(results).to_json()).has_value(), "compare writes no JSON");
    exact_table(results).csv();
    readable_table(results).text();
    static int count = 0;  // a page takes a hundred times as long as what it is made of
    if (count++ % 64 != 0) return;
    const std::string page = render_page(runs);
    fuzz::require(page.ends_with("</html>\n"), "the page does not end");
  });
  return 0;
}
