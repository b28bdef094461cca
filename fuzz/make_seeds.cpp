// Writes the seeds of the fuzz targets' corpora: small files of each kind, made by lacuna's own
// writers where it has some. What fuzzing has found stands next to them and is not rebuilt.
// usage: make_seeds FOLDER
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"
#include "lacuna/framework/records/mask_record.hpp"
#include "lacuna/framework/records/png_image.hpp"
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/word_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"
#include "lacuna/tests/framework/data/formats/jpeg_files.h"
#include "lacuna/tests/framework/data/image_files.h"
#include "lacuna/tests/framework/data/web_files.h"
#include "seeds.h"

using namespace lacuna;
using namespace lacuna::seeds;

namespace {

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

void write_configurations() {
  write(
      "config", "mlp",
      "data: {type: glyphs, train_size: 3000}\nmodel:\n  - flatten\n  - {type: linear, name: fc1, "
      "out_features: 200}\n  - relu\n  - {type: linear, out_features: 10}\noptimizer: {type: adam, "
      "lr: 1e-3}\nsparsity: {sparsity: 0.8, param_filter: fc1.weight}\ntrain: {epochs: 2}\n");
  write("config", "templates",
        "model:\n  define:\n    block:\n      args: {width: 8, p: 0.1}\n      layers:\n        - "
        "{type: linear, out_features: \"$(width * 2)\"}\n        - relu\n        - {type: dropout, "
        "p: $p}\n  layers:\n    - flatten\n    - {type: block, width: 4}\n    - repeat: 3\n      "
        "layers: [{type: block}]\n    - {type: residual, layers: [{type: linear, out_features: "
        "8}]}\n    - {type: linear, out_features: $num_classes}\n");
  write("config", "preset",
        "model: {type: gpt2, n_layer: 2, n_head: 2, n_embd: 8, n_positions: 16}\n");
  write("config", "anchors",
        "a: &x {b: [1, 2.5, .inf, ~, true, 'q', \"e\\x41\\n\"]}\nc: *x\nd: {<<: *x, e: |\n  "
        "text\n}\n");
  write("config", "anchors_block",
        "base: &base\n  lr: 0.1\n  w: [1, -2, 0x10]\nuse:\n  <<: *base\n"
        "  lr: 0.2\ntext: >-\n  folded\n  text\n");
  write("override", "some",
        "train.epochs=5\xFFmodel.1.out_features=20\xFFoptimizer={type: sgd, lr: 0.1}"
        "\xFF"
        "data.dir='a b'\xFFmodel.0=relu\xFF"
        "a.b.c=[1, 2]");
  write("sweep_over", "some",
        "sparsity.sparsity=0.8,0.9,0.95\xFFmodel={a: [1, 2]},\"x,y\"\xFFoptimizer.lr=1e-3, 1e-2");
}

void write_tables() {
  write("csv", "header", std::string_view("\0a,b,c,d\n1,2,3,0\n4,5,6,1\n-1e3,.5,0x,2\n", 33));
  write("csv", "names", std::string_view("\0a,b,label\r\n1,2,cat\r\n3,4,\"d\"\"og\"\r\n", 35));
  write("csv", "semicolons",
        "\x09"
        "x;y\n1;2\n3;4\n");
  write("csv", "guessed",
        "\x04"
        "1,2,0\n3,4,1\n");
  write("csv", "by_name",
        "\x80"
        "c,b,a\n1,2,0\n3,4,1\n");
  write("labelled_sparse", "some", "3 100 20\n4,5 23:0.0804 24:1e-3\n7 99:-2\n 3:1.0\n");
  write("labelled_sparse", "no_features", "2 5 3\r\n0,1,2\r\n1 0:1 4:0.5");
  write("csv_columns", "categories",
        "\x01"
        "a,b,c,d,y\n1,2,red,3,0\n4,5,\"bl\"\"ue\",6,1\n");
  write("csv_columns", "dates",
        "\x54"
        "a,b,c,d,y\n1,2,3,2024-03-01T12:30:00.5+01:00,0\nNA,x,?,1970-01-01,1\n");
  write("csv_columns", "formats",
        "\x08"
        "a,b,c,d,y\n1,2,3,3/14/24 12:30,0\n");
  write("csv_columns", "known",
        "\x93"
        "c,a,d,y\nred,1,2,0\n,3,4,1\npink,5,,0\n");
  write("csv_columns", "numbered",
        "\x21"
        "1,2,red,4,0\n");
  std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16);
  images += "abcdefghijkl";
  const std::string labels("\0\0\x08\x01\0\0\0\x03\x01\x02\x09", 11);
  write("idx", "images", images);
  write("idx", "labels", labels);
  write("idx", "images.gz", gzipped(images));
  write("cifar", "record", std::string("\x03", 1) + std::string(40, 'x') + std::string(1, '\0'));
  write("cifar", "record100",
        std::string("\x03\x11", 2) + std::string(20, 'x') + std::string(1, '\1'));
}

void write_hdf5() {
  const std::string path = path_of("hdf5_data", "arrays");
  Hdf5File file = Hdf5File::create(path);
  file.write("train_inputs", some_tensor(Shape{4, 3}));
  file.write("train_targets", Shape{4}, std::vector<int64_t>{0, 1, 2, 1});
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6};
  file.write("test_inputs", some_tensor(Shape{2, 3}));
  file.write("test_targets", Shape{2}, std::vector<int64_t>{0, 1});
  file.close();
  Hdf5File images = Hdf5File::create(path_of("hdf5_data", "images"));
  images.write("train_inputs", Shape{2, 1, 3}, bytes, Compression::Deflate);
  images.write("train_targets", Shape{2}, std::vector<int64_t>{0, 1});
  images.close();
  const MaskRecord mask = record_mask(
      "fc1.weight", Shape{3, 5}, [](const auto& take) { take(1), take(7), take(14); },
      MaskDetail::Positions);
  const MaskRecord tiles = record_mask(
      "fc2.weight", Shape{3, 5}, [](const auto& take) { take(0), take(9); }, MaskDetail::Tiles);
  write_masks(path_of("masks", "masks"), 7, {mask, tiles});
  drop_seal("masks", "masks");
}

// An .npy file of these bytes.
std::string npy_of(const std::string& descr, const std::vector<int64_t>& shape,
                   const std::string& bytes) {
  return render_npy_header(descr, shape) + bytes;
}

void write_array_data() {
  const std::vector<NamedArray> numbers = {{"train_inputs", some_tensor(Shape{4, 3})},
                                           {"train_targets", std::vector<int64_t>{0, 1, 2, 1}},
                                           {"test_inputs", some_tensor(Shape{2, 3})},
                                           {"test_targets", std::vector<int32_t>{0, 1}}};
  write_npz(path_of("npz_data", "numbers"), numbers);
  const std::string inputs = npy_of("|u1", {2, 1, 2}, "abcd");
  const std::string parts[] = {
      npy_of("<U2", {2}, std::string("a\0\0\0\0\0\0\0b\0\0\0\xe9\0\0\0", 16)),
      npy_of(">U1", {2, 1}, std::string("\0\0\0a\0\0\0b", 8)),
      npy_of("|S3", {2}, std::string("ab\0c\xc3\xa9", 6)),
      npy_of("|b1", {2, 2}, std::string("\1\0\0\1", 4))};
  for (size_t i = 0; i < std::size(parts); ++i) {
    std::ofstream stream(path_of("npz_data", "texts" + std::to_string(i)), std::ios::binary);
    ZipWriter zip(stream);
    const auto add = [&](const std::string& name, const std::string& npy) {
      const std::span<const std::byte> bytes = std::as_bytes(std::span(npy));
      zip.add(name, std::span(&bytes, 1));
    };
    add("train_inputs.npy", inputs);
    add("train_targets.npy", parts[i]);
    zip.finish();
  }
}

void write_texts() {
  const std::string vocabulary =
      "{\"t\":0,\"h\":1,\"e\":2,\"th\":3,\"the\":4,\"\xC4\xA0\":5,\"l\":6}";
  const std::string merges = "#version: 0.2\nt h\nth e\n";
  write("vocabulary", "bpe", vocabulary + '\xFF' + merges);
  const std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nlow\n##er\n";
  write("vocabulary", "wordpiece", pieces);
  write("text", "words",
        "the aim, THE end\xFF"
        "the lowest aim in 12 lows\n");
  write("text", "unicode",
        "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 e\xCC\x81\xFF\xE2\x82\xAC\xC3\xA9 e\xCC\x81");
  write("sentences", "lines",
        std::string_view("\0"
                         "1 a good b\n0\tbad  one\r\n12 a\n",
                         29));
  write("sentences", "column",
        "\x01"
        "s,label\n\"a, \"\"good\"\"\nb\",1\nbad,0\n");
  write("sentences", "pairs",
        "\x03"
        "t,label,s\na b c d e f,1,good\nbad,0,a b a b a b a b\n");
  write("sentences", "semicolons",
        "\x0f"
        "s;t\na;b\n");
  write("sentences", "no_header",
        "\x31"
        "\"1\",\"a b\",c\n2,\"a \"\"b\"\"\",d\n");
  write("sentences", "fast_text",
        std::string_view("\0"
                         "__label__good a b\n__label__b-d c\n",
                         34));
  write("token_file", "short", std::string_view("\x0a\x01\0\x02\0\x01\x01\0\0\x07\0", 11));
  write("token_file", "outside", "\x01\xff\xff\x01\x01\x02\x02");
  write("tokenizer_json", "bytes", ByteTokenizer().to_json());
  write("tokenizer_json", "characters",
        CharacterTokenizer::of("the aim of it, \xC3\xA9 12").to_json());
  write("tokenizer_json", "bpe", BpeTokenizer::from_files(vocabulary, merges).to_json());
  write("tokenizer_json", "wordpiece", WordPieceTokenizer::from_file(pieces, true).to_json());
  WordCounter counter({.cls = true, .mask = "[MASK]"});
  counter.add("the aim of it and the end");
  write("tokenizer_json", "words", counter.make()->to_json());
}

void write_images() {
  Palette palette{};
  for (size_t i = 0; i < 256; ++i) palette[i] = {static_cast<uint8_t>(i), 0, 100};
  write("png", "palette",
        encode_png(3, 2, std::vector<uint8_t>{0, 50, 100, 150, 200, 250}, palette));
  write("png", "colour", plain_png(4, 3, 200, 10, 30));
  write("png", "deep",
        png_bytes({.width = 2,
                   .height = 2,
                   .color_type = PNG_COLOR_TYPE_RGBA,
                   .bit_depth = 16,
                   .interlace = PNG_INTERLACE_ADAM7},
                  std::string(32, 'q')));
  write("png", "bits",
        png_bytes({.width = 9, .height = 2, .color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 1},
                  std::string(4, '\x5A')));
  const std::string pixels(9 * 7 * 4, 'p');
  write("jpeg", "grey", jpeg_bytes({.width = 9, .height = 7, .space = JCS_GRAYSCALE}, pixels));
  write("jpeg", "colour", jpeg_bytes({.width = 9, .height = 7}, pixels));
  write("jpeg", "progressive",
        jpeg_bytes({.width = 9, .height = 7, .is_progressive = true}, pixels));
  write("jpeg", "cmyk", jpeg_bytes({.width = 9, .height = 7, .space = JCS_CMYK}, pixels));
}

// Where lacuna has these libraries.
void write_web_images() {
#if LACUNA_HAVE_WEBP
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 9 * 7 * 3; ++i) pixels.push_back(static_cast<uint8_t>(5 * i));
  write("webp", "lossless", webp_bytes(9, 7, pixels));
  uint8_t* bytes = nullptr;
  const size_t size = WebPEncodeRGB(pixels.data(), 9, 7, 27, 50.0f, &bytes);
  write("webp", "lossy", {reinterpret_cast<const char*>(bytes), size});
  WebPFree(bytes);
#endif
#if LACUNA_HAVE_GIF
  write("gif", "two_frames",
        gif_bytes(2, 2,
                  {{.width = 2, .height = 2, .indices = {0, 1, 2, 3}},
                   {.width = 2, .height = 2, .indices = {3, 3, 3, 3}}}));
  write("gif", "interlaced",
        gif_bytes(3, 9,
                  {{.width = 2,
                    .height = 9,
                    .is_interlaced = true,
                    .indices = std::vector<uint8_t>(18, 2),
                    .transparent = 1}}));
#endif
}

void write_run() {
  const std::string metrics =
      "{\"step\": 10, \"epoch\": 0.5, \"split\": \"train\", \"loss\": 2.1, \"accuracy\": 0.3, "
      "\"lr\": "
      "0.001, \"examples_per_second\": 100, \"seconds\": 0.5, \"sparsity\": {\"fc1.weight\": "
      "{\"target\": "
      "0.8, \"actual\": 0.8}}}\n"
      "{\"step\": 10, \"epoch\": 0.5, \"split\": \"update\", \"parameter\": \"fc1.weight\", "
      "\"target\": "
      "0.8, \"actual\": 0.8, \"nnz\": 12, \"dropped\": 1, \"grown\": 1, \"churn\": 0.1, "
      "\"dead_rows\": "
      "0, \"dead_columns\": 2, \"layout\": \"csr\", \"ever_active\": 0.5}\n"
      "{\"step\": 10, \"epoch\": 0.5, \"split\": \"test\", \"loss\": 2.0, \"accuracy\": 0.4}\n";
  const std::string summary =
      "{\"test_accuracy\": 0.4, \"test_loss\": 2.0, \"steps\": 10, \"numel\": 15, "
      "\"nnz\": 3, \"parameter_bytes\": 60, \"stopped_early\": false}";
  write("run_data", "run",
        metrics + '\xFF' + summary + '\xFF' + "train: {seed: 1}\nmodel: [flatten]\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  set_corpus(arguments[1]);
  write_configurations();
  write_tables();
  write_hdf5();
  write_weights();
  write_array_data();
  write_texts();
  write_images();
  write_web_images();
  write_run();
  return 0;
}
