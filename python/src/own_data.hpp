// OwnDataset: a dataset whose examples a class in Python gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "binding.hpp"
#include "lacuna/framework/data/dataset.h"

namespace lacuna::python {

/// A subclass in Python defines __len__ and __getitem__(i), which returns a pair (x, y): numbers
/// (bytes become b / 255), and an integer (a class), numbers or None. Shapes and kinds are those of
/// the first example. *Errors:* TypeError where a method is missing or gives something else,
/// DataError where an example is unlike the first.
class OwnDataset : public Dataset {
 public:
  int64_t size() const override;
  const Shape& example_shape() const override;
  /// Where neither is given, one more than the largest label of all examples. *Cost:* then a pass
  /// over them, once.
  int64_t num_classes() const override;
  int64_t num_outputs() const override;
  std::vector<std::string> class_names() const override;
  Batch gather(std::span<const int64_t> indices) const override;
  bool may_prefetch() const override { return false; }

  void set_num_classes(int64_t count) { num_classes_ = count; }
  void set_class_names(std::vector<std::string> names) { class_names_ = std::move(names); }

 private:
  enum class Answer { None, Label, Numbers };
  struct Example {
    py::array x, y;
    Shape shape = {};
    Answer answer = Answer::None;
    int64_t label = 0;
    Tensor targets = {};
  };
  struct Kind {
    Shape shape;
    Answer answer;
    int64_t outputs;
  };

  py::object self() const;
  py::object own(const char* name) const;
  std::string class_name() const;
  Example example(int64_t index) const;
  const Kind& kind() const;
  void require_alike(int64_t index, const Example& example) const;

  // Found out when it is first asked for; the GIL guards them.
  mutable int64_t size_ = -1, num_classes_ = 0, largest_label_ = -1;
  mutable std::optional<Kind> kind_;
  std::vector<std::string> class_names_;
};

/// *Errors:* DataError unless the answers have shape [examples], or [examples, outputs] if they are
/// not labels.
void require_one_answer_each(const py::array& answers, int64_t examples, bool are_labels);

/// A dataset for C++ to keep; the object of one that is a class in Python lives as long. *Errors:*
/// TypeError.
std::shared_ptr<const Dataset> dataset_of(const py::object& object);

}  // namespace lacuna::python
