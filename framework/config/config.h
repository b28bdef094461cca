// Config: a tree of options with source positions. A YAML file is one source of it; C++ is another.
// It also serves as the value that JSON and YAML output is written from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {

/// The position of a value: file name, line and column from 1 (0: not from a file).
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;

  /// "file.yaml:3:5", or the known parts of it.
  std::string text() const;
};

/// A node of the tree: null, scalar, list or map (in order). Copies share the node; `clone()`
/// copies it.
///
/// Reading marks a key as known, and writes the default of a key that is absent into the tree: once
/// everything is built, `require_all_read()` finds the keys that nothing understood, and the tree
/// is the complete, resolved configuration.
class Config {
 public:
  enum class Kind { Null, Scalar, List, Map };
  using Entry = std::pair<std::string, Config>;

  Config();
  Config(bool value);
  Config(int value);
  Config(int64_t value);
  Config(uint64_t value);
  Config(float value);  ///< the shortest decimal that reads back as this float
  Config(double value);
  Config(const char* value);
  Config(std::string value);
  static Config list(std::vector<Config> items = {});
  static Config map(std::vector<Entry> entries = {});
  /// A scalar whose type follows from the text, as for plain (unquoted) scalars in YAML.
  static Config plain(std::string text);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::Null; }
  bool is_scalar() const { return kind() == Kind::Scalar; }
  bool is_list() const { return kind() == Kind::List; }
  bool is_map() const { return kind() == Kind::Map; }
  /// Whether a scalar is a number, and whether it is true or false. Quoted text is neither.
  bool is_number() const;
  bool is_bool() const;

  /// "train.batch_size", "model.0.name"; empty at the root.
  const std::string& path() const;
  const SourcePosition& position() const;
  void set_position(SourcePosition position);
  /// "file.yaml:3:5: train.batch_size", or the known parts of it.
  std::string where() const;

  // Reading a map. A key that is absent or null counts as absent. *Errors:* ConfigError if the node
  // is a scalar or a list.
  bool has(std::string_view key) const;
  /// The child. *Errors:* ConfigError when it is absent, or this is not a map.
  Config at(std::string_view key) const;
  /// The child, or a Null node that knows its path.
  Config get(std::string_view key) const;
  /// T: bool, int64_t, int, uint64_t, double, float, std::string, std::vector of int64_t, double or
  /// std::string.
  /// *Errors:* ConfigError on an absent key or a wrong type.
  template <class T>
  T required(std::string_view key) const {
    return at(key).template as<T>();
  }
  /// The value, or `fallback`, which is then written into the tree.
  template <class T>
  T get(std::string_view key, const T& fallback) const {
    const Config child = get(key);
    if (!child.is_null()) return child.template as<T>();
    set_default(key, from_value(fallback));
    return fallback;
  }
  /// The value, or nothing; nothing is written.
  template <class T>
  std::optional<T> optional(std::string_view key) const {
    const Config child = get(key);
    if (child.is_null()) return std::nullopt;
    return child.template as<T>();
  }
  /// The scalar (or list of scalars) as T. *Errors:* ConfigError with position, expected and found.
  template <class T>
  T as() const;

  /// The value at a dotted path, where a number indexes a list, and keys that contain dots are
  /// found, too; Null if it does not exist. Marks nothing as read, and writes nothing.
  Config peek(std::string_view dotted_path) const;
  /// The children of a list (under the keys "0", "1", …) or map, in order; none of other nodes.
  /// Marks nothing as read. *Lifetime:* until this node changes.
  const std::vector<Entry>& children() const&;
  const std::vector<Entry>& children() const&& = delete;

  /// The children of a list, in order; marks them as read. *Errors:* ConfigError if it is no list.
  std::vector<Config> items() const;
  /// The entries of a map, in order; marks them as read. A null node has none. *Errors:*
  /// ConfigError if it is a list or a scalar.
  std::vector<Entry> entries() const;

  /// *Errors:* ConfigError naming the first key, here or below, that no accessor asked for, and the
  /// nearest of those that were.
  void require_all_read() const;
  /// Whether something has asked for this node.
  bool is_read() const;
  /// Marks everything here and below as read: for parts kept for later.
  void mark_read() const;
  /// Throws ConfigError: "<where>: expected <expected>, found <this node>".
  [[noreturn]] void fail(std::string_view expected) const;
  /// Throws ConfigError: "<where>: <message>".
  [[noreturn]] void error(std::string_view message) const;

  // Writing.
  /// Sets an entry of a map (a null node becomes a map). *Errors:* ConfigError on another node.
  void set(std::string_view key, Config value);
  /// Appends to a list (a null node becomes a list). *Errors:* ConfigError on another node.
  void push_back(Config value);
  /// Sets a value at a dotted path; a number indexes a list. Missing maps on the way are created.
  /// *Errors:* ConfigError if a part of the path is empty, if there are more than 100 parts, or if
  /// it leads through a scalar or past a list's end.
  void set_path(std::string_view dotted_path, const Config& value);
  /// Removes an entry of a map; does nothing if it is absent.
  void erase(std::string_view key);
  Config clone() const;
  /// Equal as values: scalars by type and value, maps without regard to order.
  friend bool operator==(const Config& a, const Config& b);

  /// Text of a scalar as it was written; a short description of other nodes ("a map").
  std::string text() const;
  std::string to_yaml() const;
  /// JSON on one line, or indented by two spaces.
  std::string to_json() const;
  std::string to_json_indented() const;

  template <class T>
  static Config from_value(const T& value) {
    return Config(value);
  }
  template <class T>
  static Config from_value(const std::vector<T>& values) {
    Config items = list();
    for (const T& value : values) items.push_back(Config(value));
    return items;
  }

 private:
  struct Node;
  explicit Config(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  void set_default(std::string_view key, Config value) const;
  void adopt(Config child, const std::string& key) const;

  std::shared_ptr<Node> node_;
};

/// A range check that fails with the node's position: `require_range(map, "p", p, 0.0, 1.0)`.
/// Returns `value`. *Errors:* ConfigError unless low ≤ value ≤ high.
double require_range(const Config& map, std::string_view key, double value, double low,
                     double high);
/// The same for integers. *Errors:* ConfigError unless low ≤ value ≤ 2⁵³ (config/integer_range.h).
int64_t require_at_least(const Config& map, std::string_view key, int64_t value, int64_t low);

/// Returns make(). An error that it throws about options that know no file is given the position of
/// the node they came from. *Errors:* ConfigError.
template <class Make>
auto at_position(const Config& node, Make&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const ConfigError& error) {
    if (std::string(error.what()).starts_with(node.position().file + ":")) throw;
    node.error(error.what());
  }
}

}  // namespace lacuna
