// --set on `train`, and what may change when a run is resumed.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/records/change_record.hpp"

namespace lacuna {

/// Applies --set assignments to a configuration, one after the other. The last of `train.steps`,
/// `train.epochs` and `train.seconds` takes the place of the others; `sparsity.layout` and
/// `sparsifiers.layout` are those of every entry. *Errors:* ConfigError.
void apply_overrides(Config& config, const std::vector<std::string>& assignments);

/// One assignment alone: as apply_overrides, but for earlier names and the other lengths.
void apply_assignment(Config& config, const std::string& assignment);

/// Makes a map of `loss: NAME` or `sparsity: NUMBER` if an assignment is to one of its keys.
void write_out_short_form(Config& config, const std::string& assignment);

/// What may change of a run that goes on, in addition to what always may.
struct MayChange {
  /// The optimizer's keys (--change): not its type, and momentum not from or to 0, whose states the
  /// checkpoint does not have or has for nothing.
  bool optimizer = false;
  std::vector<ConfigChange> recorded = {};  ///< of changes.jsonl, since the checkpoint
};

/// Applies --set assignments to the configuration of a run that goes on. Allowed are data.dir, the
/// length, and whatever does not touch the numbers: threads, logging, evaluation, checkpoints,
/// layouts; any key set to the value it has; what `may` allows. *Errors:* ConfigError that names
/// the key, the run's value, and what may be changed.
void apply_resume_overrides(Config& run, const std::vector<std::string>& assignments,
                            const MayChange& may = {});

/// Brings the configuration of a run's checkpoint to what its config.yaml (`written`, of the name
/// `file`) has been changed to since by --set. *Errors:* ConfigError, as of apply_resume_overrides,
/// when the file has another value that may not change: somebody edited it.
void take_changes(Config& run, const Config& written, const std::string& file,
                  const MayChange& may = {});

/// Which of the optimizer's values are others than `before`: `asked` holds the keys that were
/// changed, `resolved` what they are with their defaults.
std::vector<ConfigChange> optimizer_changes(const Config& before, const Config& asked,
                                            const Config& resolved, int64_t step);
/// "optimizer.lr was 0.01, and is 0.001".
std::string in_words(const ConfigChange& change);

/// The same of keys that the checkpoint's configuration did not have, once the experiment is built
/// and the defaults are known (`resolved`), which a newer version may have more of. Values of the
/// optimizer that `may` change have been judged before. *Errors:* ConfigError.
void refuse_additions(const Config& resolved, const Config& written, const std::string& file,
                      const MayChange& may = {});

/// A line for each key in which two configurations differ: "optimizer.lr was 0.01,
/// and is 0.1"; `ignored` keys, and what is below them, left out.
std::vector<std::string> differences_in_words(const Config& before, const Config& now,
                                              const std::vector<std::string>& ignored);

/// *Errors:* ConfigError that shows each difference when `given` (null: anything
/// goes) describes another model.
void require_same_model(const Config& run, const Config& given);

/// Other values that `given` states differently from the run: a line each that the run's is
/// used. Empty when `given` is null.
std::vector<std::string> unused_changes(const Config& run, const Config& given);

}  // namespace lacuna
