#include "common/program.h"

#include <omp.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include "common/dense_opponent.h"
#include "common/moment.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/train/builtins.h"

namespace lacuna::bench {
namespace {

std::string command_line(int argc, char** argv, const std::string& name) {
  const char* cap = std::getenv("LACUNA_INSTRUCTION_SET");
  std::string text = cap == nullptr ? "" : "LACUNA_INSTRUCTION_SET=" + std::string(cap) + " ";
  text += "./scripts/bench.sh " + name;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" || argument == "--markdown") {
      ++i;  // where the results went is no part of how they came about
    } else if (!argument.starts_with("--json=") && !argument.starts_with("--markdown=")) {
      text += " " + argument;
    }
  }
  return text;
}

// "AMD EPYC 9R14", if the system reports it.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "a processor without a name";
}

// Before any thread is made: those have the priority of who makes them.
void ask_for_realtime() {
  sched_param priority{};
  priority.sched_priority = 20;
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) == 0) return;
  throw Error(std::string("--realtime: the system refuses real-time priority (") +
              std::strerror(errno) +
              "); run as root, or allow it: `ulimit -r 20`, or `sudo setcap cap_sys_nice+ep` on "
              "this program");
}

}  // namespace

double Settings::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MeasureOptions Settings::measuring() const {
  MeasureOptions options;
  if (size == Size::Full) options = {.repetitions = 101, .most_ms = 3000.0};
  if (size == Size::Tiny) options.repetitions = 1;
  if (repetitions > 0) options.repetitions = repetitions;
  return options;
}

std::string Settings::threads_text() const {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(const Settings&, Report&)>& body,
                const std::vector<Option>& options) {
  Settings settings;
  std::string json, markdown;
  bool is_quick = false, is_tiny = false, is_realtime = false;
  CLI::App app{description};
  app.add_flag("--quick", is_quick, "Measure less, within 50 s");
  app.add_flag("--tiny", is_tiny, "Run everything once on tiny sizes: a test of this program");
  app.add_flag("--realtime", is_realtime,
               "Run with real-time priority, ahead of all other programs: quiet on a busy machine");
  app.add_option("--json", json, "Also write rows as JSON to this file");
  app.add_option("--markdown", markdown, "Also write the summary as Markdown to this file");
  app.add_option("--threads", settings.threads, "Threads of every contender (default 1)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--repetitions", settings.repetitions, "Repetitions at most (default by size)")
      ->check(CLI::Range(1, 100000));
  for (const Option& option : options) {
    if (option.texts != nullptr) app.add_option(option.name, *option.texts, option.help);
    if (option.numbers != nullptr) {
      app.add_option(option.name, *option.numbers, option.help)
          ->check(CLI::Range(option.lowest, option.highest));
    }
  }
  CLI11_PARSE(app, argc, argv);
  settings.size = is_tiny ? Size::Tiny : is_quick ? Size::Quick : Size::Full;
  try {
    if (is_realtime) ask_for_realtime();
    register_builtins();
    set_num_threads(settings.threads);
    omp_set_num_threads(settings.threads);  // of raw oneDNN and Eigen
    const FlushDenormals flush;
    const std::string setting = processor_name() + ", " + settings.threads_text() + ", " +
                                active_instruction_set() + " kernels, dense products by " +
                                dense_provider() + ", dense opponent: " + dense_opponent() +
                                (is_realtime ? ", real-time priority" : "");
    std::printf("%s: %s\n", name.c_str(), setting.c_str());
    Report report;
    body(settings, report);
    std::string limits;
    if (MachineProbe::has_looked()) {
      limits = MachineProbe::instance().to_string();
      std::printf("\nThe machine gave %s.\n", limits.c_str());
      limits = "; " + limits;
    }
    if (!json.empty()) report.write_json(json);
    if (!markdown.empty()) {
      report.write_markdown(markdown, command_line(argc, argv, name), setting + limits);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_%s: %s\n", name.c_str(), error.what());
    return 1;
  }
}

}  // namespace lacuna::bench
