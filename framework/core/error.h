// The exceptions lacuna throws. The library throws and never aborts, and prints nothing but the
// notice of dense_fallback.h and what Progress and the log are asked to; the program turns what it
// catches into an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace lacuna {

/// Base of the exceptions that lacuna throws on purpose, except BufferError (core/buffer.h), which
/// is a std::bad_alloc: models and backward turn it into MemoryError, tensors and operations do
/// not. `what()` states where, what was expected, what was found and, if there is a remedy, what to
/// do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Tensors, layers or parameters whose shapes do not match. Names both shapes.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// An invalid configuration: unknown key or name, wrong type, value out of range. Names file, line,
/// column and key path, and the nearest valid name.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is damaged, has a newer format, or belongs to a different model.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A data file that is missing, malformed or inconsistent.
class DataError : public Error {
 public:
  using Error::Error;
};

/// Memory that the system could not provide. Names its purpose, the bytes requested and the bytes
/// in use.
class MemoryError : public Error {
 public:
  using Error::Error;
};

/// A call that is not allowed in the present state: a second backward, a second apply, a file that
/// cannot be written.
class StateError : public Error {
 public:
  using Error::Error;
};

}  // namespace lacuna
