// The `text` and `tokens` datasets: a long text, of which the next token is to be predicted.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// Keys of `data` (in addition to those of load_data):
///
/// - `path` (required): a file, or a folder whose files, by name, are one text. Files whose names
///   end in .gz are unpacked.
/// - `tokenizer`: `characters` (the default; those of all of `path`) | `bytes` | `words` (those of
///   the training split) | `bpe` | `wordpiece`, and their keys, see read_tokenizer.
/// - `context`: tokens of an example. Default 64.
/// - `stride`: tokens from one training example to the next. Default 1.
/// - `mask_fraction`: a masked language model's: this fraction of the tokens, in (0, 1), is hidden
///   and to be told, see MaskedWindows; [CLS] and [SEP] stand around a window where the vocabulary
///   has both. Default: none, and the next token is to be predicted.
/// - `mask_token`: what stands for a hidden token. Default [MASK] for wordpiece, whose vocabulary
///   must have it, and words, which get it; required for the others. Of characters it is one, which
///   is added to those of the text.
/// - `validation`, `test`: what is held out at the end of the text, the test split last: a count of
///   tokens (≥ 1) or a fraction (of all tokens, rounded up). Default 0: none. `test` may be a path.
///
/// A training split is every window of `context` tokens, a `stride` apart. The others are cut into
/// windows that do not overlap, so that each token but the first is predicted once, see
/// WindowOptions::to_the_end. Labels are the next tokens.
///
/// *Errors:* DataError, with the file, on text that is not UTF-8 (bytes takes any), that has tokens
/// outside of the vocabulary, or too few of them for one window in a split; ConfigError on values
/// out of range, and where the vocabulary has no mask. *Cost:* 2 bytes a token in memory
/// (4 of a vocabulary above 65536), and the text while it is read, with 8 bytes a token more where
/// tokens are not characters or bytes. With `bytes`, files that are not packed are mapped,
/// however large. A pass over the splits to evaluate on counts the characters that their tokens
/// stand for.
DataSplits load_text(const Config& data, uint64_t seed);
DatasetType text_dataset();

/// Keys of `data` (in addition to those of load_data):
///
/// - `dir` (required): folder of train.bin and, where there are such, val.bin and test.bin: tokens
///   as 16-bit numbers, the low byte first, as nanoGPT writes them.
/// - `vocab_size`: tokens are below it. In [1, 65536]. Default 50257, GPT-2's.
/// - `vocab`, `merges`: GPT-2's files, to keep the vocabulary with the run. Default: none.
/// - `context`, `stride`: as for `text`. `validation` too, where there is no val.bin.
/// - `mask_fraction`: as for `text`; with `vocab` and `merges` `mask_token` is what stands for a
///   hidden token, without them `mask_id`, an id below `vocab_size`.
///
/// Files are mapped, and tokens held against `vocab_size` when they are read: at once where they
/// are hashed (all of them up to 2²⁸), else when they are drawn. *Errors:* DataError, with file and
/// position, on a token outside of it; with the file when it is missing, is cut off within a token,
/// or has too few tokens.
DatasetType tokens_dataset();

}  // namespace lacuna
