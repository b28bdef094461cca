// The one place that knows yaml-cpp. Its events are used, not its nodes: they carry positions, show
// duplicate keys, and let depth be limited while it parses, which it does by recursion.
#include "lacuna/framework/io/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

constexpr size_t kMaxDepth = 100;
constexpr int64_t kMaxNodes = 1'000'000;   // aliases of aliases grow exponentially
constexpr size_t kMaxBytes = 4 * 1048576;  // a data file given by mistake

// How positions are named: in a file by line and column, in a --set by the whole assignment.
struct Source {
  std::string name;
  bool has_lines = true;

  SourcePosition at(const YAML::Mark& mark) const {
    if (!has_lines || mark.is_null()) return {name, 0, 0};
    return {name, mark.line + 1, mark.column + 1};
  }
};

[[noreturn]] void fail(const SourcePosition& position, const std::string& message) {
  Config place;
  place.set_position(position);
  place.error(message);
}

// The depth of nested lists and maps below this one.
size_t nesting_of(const Config& node) {
  if (!node.is_list() && !node.is_map()) return 0;
  size_t inside = 0;
  for (const auto& [key, value] : node.children()) inside = std::max(inside, nesting_of(value));
  return inside + 1;
}

// What nests deeper could not be read again once it is written. *Errors:* ConfigError.
void require_depth(size_t depth, const SourcePosition& position) {
  if (depth > kMaxDepth) {
    fail(position, fmt::format("lists and maps nest deeper than {}", kMaxDepth));
  }
}

// Builds the tree from the parser's events, innermost first.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(const Source& source) : source_(source) {}

  bool has_root() const { return root_.has_value(); }
  const Config& root() const { return *root_; }
  /// *Errors:* ConfigError at the first key that was not text.
  void require_text_keys() const {
    if (bad_key_) fail(bad_key_->first, bad_key_->second);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    note_bad_key(mark, "a key is missing (or is null: then quote it)");
    finish(Config(), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(source_.at(mark), "an alias inside its own anchor");
    note_bad_key(mark, "a key must be text, found an alias");
    count_nodes(mark, sizes_.at(anchor));
    require_depth(frames_.size() + nesting_of(found->second), source_.at(mark));
    place(found->second.clone(), mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (value.find('\0') != std::string::npos) {
      fail(source_.at(mark), "the text '" + printable(value, 60) + "' holds a zero byte");
    }
    const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (expects_key()) {
      take_key(mark, value, is_text);
      return;
    }
    if (!is_text && !is_plain_tag(tag)) {
      fail(source_.at(mark), "the tag '" + tag + "' is not supported; leave it out");
    }
    finish(is_text ? Config(value) : Config::plain(value), mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Config::list(), "a list");
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Config::map(), "a map");
  }
  void OnMapEnd() override {
    merge_into(frames_.back());
    close();
  }

 private:
  // A list or map whose end has not come yet.
  struct Frame {
    Config node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    int64_t nodes_before;
    std::map<std::string, int> key_lines;  // of a map
    std::optional<std::string> key;        // whose value comes next
    bool is_merge = false;                 // that key is a plain <<
    std::vector<Config> merged;
  };

  static bool is_plain_tag(const std::string& tag) {
    static const std::string kCore = "tag:yaml.org,2002:";
    return tag == "?" || tag.empty() || tag == kCore + "int" || tag == kCore + "float" ||
           tag == kCore + "bool" || tag == kCore + "null";
  }

  bool expects_key() const {
    return !frames_.empty() && frames_.back().node.is_map() && !frames_.back().key;
  }

  // Kept for the end: yaml-cpp takes a list or map that is never closed for a key at first, and
  // only then finds the syntax error.
  void note_bad_key(const YAML::Mark& mark, const std::string& message) {
    if (expects_key() && !bad_key_) bad_key_.emplace(source_.at(mark), message);
  }

  void count_nodes(const YAML::Mark& mark, int64_t count) {
    nodes_ += count;
    if (nodes_ > kMaxNodes) fail(source_.at(mark), "more than a million values; too many aliases?");
  }

  void take_key(const YAML::Mark& mark, const std::string& key, bool is_text) {
    Frame& frame = frames_.back();
    frame.is_merge = key == "<<" && !is_text;
    const auto [first, is_new] = frame.key_lines.emplace(key, mark.line + 1);
    if (!is_new && !frame.is_merge) {
      const std::string where =
          source_.has_lines ? fmt::format("; first in line {}", first->second) : "";
      fail(source_.at(mark), "the key '" + key + "' is given twice" + where);
    }
    frame.key = key;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Config node, const char* what) {
    note_bad_key(mark, std::string("a key must be text, found ") + what);
    require_depth(frames_.size() + 1, source_.at(mark));
    frames_.push_back({std::move(node), mark, anchor, nodes_, {}, {}, false, {}});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    nodes_inside_ = nodes_ - frame.nodes_before;
    finish(frame.node, frame.mark, frame.anchor);
  }

  // A node is complete: it gets its position, its anchor a copy, and its parent the node.
  void finish(Config node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    node.set_position(source_.at(mark));
    count_nodes(mark, 1);
    if (anchor != 0) {
      anchors_.insert_or_assign(anchor, node.clone());
      sizes_[anchor] = nodes_inside_ + 1;
    }
    nodes_inside_ = 0;
    place(std::move(node), mark);
  }

  void place(Config node, const YAML::Mark& mark) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (expects_key()) {
      frame.key.emplace();  // a bad one, noted
      return;
    }
    if (frame.node.is_list()) {
      frame.node.push_back(std::move(node));
    } else if (frame.is_merge) {
      add_merged(frame, node, mark);
    } else {
      frame.node.set(*frame.key, std::move(node));
    }
    frame.key.reset();
  }

  void add_merged(Frame& frame, const Config& node, const YAML::Mark& mark) {
    const std::vector<Config::Entry> single{{"", node}};
    for (const auto& [index, map] : node.is_list() ? node.children() : single) {
      if (!map.is_map()) fail(source_.at(mark), "<< takes a map or a list of maps");
      frame.merged.push_back(map);
    }
  }

  // The map's own keys win over merged ones, and earlier merged ones over later ones.
  static void merge_into(Frame& frame) {
    for (const Config& map : frame.merged) {
      for (const auto& [key, value] : map.children()) {
        if (frame.key_lines.emplace(key, 0).second) frame.node.set(key, value.clone());
      }
    }
  }

  const Source& source_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Config> anchors_;
  std::map<YAML::anchor_t, int64_t> sizes_;  // nodes in what an anchor names
  std::optional<Config> root_;
  std::optional<std::pair<SourcePosition, std::string>> bad_key_;
  int64_t nodes_ = 0;
  int64_t nodes_inside_ = 0;  // of the list or map that has just ended
};

// yaml-cpp takes some of them for the end of its input, and goes on without a word. What is not
// UTF-8 could not be written into JSON or a checkpoint later.
void refuse_other_than_text(std::string_view text, const Source& source) {
  const size_t good = utf8_bytes(text);
  int line = 0, column = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_control = byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t';
    if (is_control || at == good) {
      fail(source.has_lines ? SourcePosition{source.name, line + 1, column + 1}
                            : SourcePosition{source.name, 0, 0},
           is_control
               ? fmt::format("the control character {} is not text; is this a YAML file?", byte)
               : fmt::format("the byte {:#04x} is not UTF-8, which a configuration must be", byte));
    }
    ++column;
    if (byte == '\n') {
      ++line;
      column = 0;
    }
  }
}

// The root, or nothing when there is no document.
std::optional<Config> parse(std::string_view text, const Source& source) {
  refuse_other_than_text(text, source);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    Builder builder(source);
    if (!parser.HandleNextDocument(builder) || !builder.has_root()) return std::nullopt;
    builder.require_text_keys();
    Builder rest(source);
    if (parser.HandleNextDocument(rest)) {
      const SourcePosition second =
          rest.has_root() ? rest.root().position() : SourcePosition{source.name, 0, 0};
      fail(second, "a second document begins here; expected one");
    }
    return builder.root();
  } catch (const YAML::Exception& error) {
    fail(source.at(error.mark), "not valid YAML: " + error.msg);
  }
}

Config require_document(std::string_view text, const Source& source) {
  const std::optional<Config> root = parse(text, source);
  if (!root || root->is_null()) fail({source.name, 0, 0}, "is empty; expected a configuration");
  return *root;
}

std::string read_text(const std::string& path) {
  const auto cannot = [&](int reason) {
    throw ConfigError("cannot read config '" + path + "': " + std::strerror(reason));
  };
  if (std::filesystem::is_directory(path)) cannot(EISDIR);
  if (const std::string reason = why_no_file(path); !reason.empty()) {
    throw ConfigError("cannot read config '" + path + "': it " + reason);
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) cannot(errno == 0 ? ENOENT : errno);
  std::string text;
  char block[65536];
  while (stream.read(block, sizeof block) || stream.gcount() > 0) {
    text.append(block, static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxBytes) {
      throw ConfigError("cannot read config '" + path +
                        "': it is larger than 4 MiB, the limit for a configuration");
    }
  }
  if (stream.bad()) cannot(errno == 0 ? EIO : errno);
  return text;
}

// The 16 bits of JSON's \u1234 at this place, if they lie from `first` on in a range of 1024.
std::optional<uint32_t> escaped_surrogate(std::string_view text, size_t at, uint32_t first) {
  if (text.substr(at, 2) != "\\u" || text.size() < at + 6) return std::nullopt;
  uint32_t bits = 0;
  const auto [end, error] = std::from_chars(&text[at + 2], &text[at] + 6, bits, 16);
  if (end != &text[at] + 6 || bits - first >= 1024) return std::nullopt;
  return bits - first;
}

// JSON writes what lies past U+FFFF as two escapes, YAML as one.
std::string with_joined_surrogates(std::string_view json) {
  std::string yaml;
  for (size_t at = 0; at < json.size();) {
    const size_t escape = std::min(json.find('\\', at), json.size());
    yaml += json.substr(at, escape - at);
    const auto high = escaped_surrogate(json, escape, 0xD800);
    const auto low = high ? escaped_surrogate(json, escape + 6, 0xDC00) : std::nullopt;
    if (low) yaml += fmt::format("\\U{:08x}", 0x10000 + *high * 1024 + *low);
    if (!low) yaml += json.substr(escape, 2);
    at = std::min(escape + (low ? 12 : 2), json.size());
  }
  return yaml;
}

}  // namespace

Config load_yaml(const std::string& path) {
  const std::string text = read_text(path);
  return parse_yaml(path.ends_with(".json") ? with_joined_surrogates(text) : text, path);
}

Config parse_yaml(std::string_view text, const std::string& file_name) {
  return require_document(text, {file_name, true});
}

void apply_override(Config& root, std::string_view assignment) {
  const Source source{"--set " + printable(assignment), false};
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail({source.name, 0, 0}, "expected PATH=VALUE, as in train.epochs=5 or data.dir=/somewhere");
  }
  const std::string_view path = assignment.substr(0, equals);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (!is_utf8(path) || std::ranges::any_of(path, is_control)) {
    fail({source.name, 0, 0}, "the path before = is not text in UTF-8 on one line");
  }
  Config value;
  try {
    value = parse(assignment.substr(equals + 1), source).value_or(Config());
  } catch (const ConfigError& error) {
    throw ConfigError(std::string(error.what()) + " (text with special characters needs quotes)");
  }
  if (value.position().file.empty()) value.set_position({source.name, 0, 0});
  Config changed = root.clone();
  try {
    changed.set_path(path, value);
  } catch (const ConfigError& error) {
    fail({source.name, 0, 0}, error.what());
  }
  require_depth(nesting_of(changed), {source.name, 0, 0});
  root = changed;
}

}  // namespace lacuna
