// Labelled sentences: the first byte chooses lines or CSV, with a header or without, one sentence
// or two, and whether classes have names; the rest is the file. In memory and streamed the examples
// are the same.
#include <algorithm>
#include <numeric>

#include "lacuna/framework/data/formats/sentence_file.hpp"
#include "lacuna/framework/data/types/labelled_text.hpp"
#include "lacuna/framework/text/word_tokenizer.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

namespace {

const std::shared_ptr<const WordTokenizer>& words() {
  static const auto tokenizer = std::make_shared<const WordTokenizer>(
      std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "good", "bad"}, true);
  return tokenizer;
}

void require_same(const Dataset& held, const Dataset& streamed) {
  fuzz::require(held.size() == streamed.size(), "streamed there is another number of examples");
  std::vector<int64_t> all(static_cast<size_t>(std::min<int64_t>(held.size(), 50)));
  std::iota(all.begin(), all.end(), 0);
  const Batch a = held.gather(all), b = streamed.gather(all);
  fuzz::require(std::ranges::equal(a.labels.values(), b.labels.values()), "other labels");
  for (const auto& [name, tensor] : a.named) {
    fuzz::require(std::ranges::equal(tensor.values(), b.named.at(name).values()), "other tokens");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile scratch("sentences");
  if (size == 0) return 0;
  const unsigned choice = data[0];
  scratch.write(fuzz::text_of(data + 1, size - 1));
  SentenceColumns columns{.delimiter = (choice & 4) != 0 ? ';' : ',',
                          .num_labels = 1000,
                          .label_may_lack = (choice & 8) != 0};
  if ((choice & 1) != 0) {
    columns.texts = {"s"};
    if ((choice & 2) != 0) columns.texts.emplace_back("t");
    columns.label = "label";
  }
  if ((choice & 0x10) != 0 && !columns.texts.empty()) {
    columns.has_header = false;
    columns.texts.front() = "1";
    if (columns.texts.size() > 1) columns.texts.back() = "-1";
    columns.label = "0";
  }
  if ((choice & 0x20) != 0) {
    columns.class_names = {"bad", "good"};
    columns.label_texts = {"1", "2"};
  }
  fuzz::answer([&] {
    const auto held =
        std::make_shared<const SentenceFile>(scratch.path(), columns, TextPlace::InMemory);
    const auto on_disk =
        std::make_shared<const SentenceFile>(scratch.path(), columns, TextPlace::OnDisk);
    fuzz::require(held->size() == on_disk->size(), "on the disk there are other examples");
    for (int64_t i = 0; i < held->size(); ++i) {
      fuzz::require(held->label(i) >= 0 && held->label(i) <= held->largest_label(),
                    "a label is no class");
    }
    require_same(*sentences_of(held, words(), 9, 1000, false),
                 *sentences_of(on_disk, words(), 9, 1000, true));
  });
  return 0;
}
