#include "lacuna/framework/program/process_options.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <typeinfo>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/program/commands.hpp"

namespace lacuna {
namespace {

// An exception of a type that lacuna does not throw on purpose: classes of users may.
std::string describe_unknown(const std::exception& error) {
  const std::unique_ptr<char, decltype(&std::free)> type(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, nullptr), &std::free);
  return std::string(type ? type.get() : "exception") + ": " + error.what() +
         " (an error in lacuna, or in a class that was added to it)";
}

}  // namespace

void take_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest descriptor that is free is this one.
    const int flags = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) return;
  }
}

int fail(const std::string& message, int code) {
  end_job(code, message, [](const std::string& text) { log_error(text); });
  let_first_speak();
  log_error(naming_process(message));
  return code;
}

int fail_by(const std::exception_ptr& problem) {
  constexpr const char* kLessMemory = "; a smaller train.batch_size or model needs less";
  try {
    std::rethrow_exception(problem);
  } catch (const ConfigError& error) {
    return fail(error.what(), kUsageError);
  } catch (const MemoryError& error) {
    return fail(error.what() + std::string(kLessMemory), kRunError);
  } catch (const Error& error) {
    return fail(error.what(), kRunError);
  } catch (const std::bad_alloc& error) {
    return fail(describe(error) + kLessMemory, kRunError);
  } catch (const std::system_error& error) {
    const bool is_short = error.code() == std::errc::resource_unavailable_try_again;
    return fail(is_short ? "the system cannot start another thread: too little memory, or too many "
                           "threads (train.threads, train.prefetch)"
                         : describe_unknown(error),
                kRunError);
  } catch (const std::exception& error) {
    return fail(describe_unknown(error), kRunError);
  }
}

}  // namespace lacuna
