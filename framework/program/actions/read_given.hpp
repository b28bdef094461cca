// Given configurations, read; and what of them belongs to the whole process.
#pragma once

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/program/actions/given_config.h"

namespace lacuna {

/// The file, or a copy of the tree, before its overrides. Files found next to it are reported.
/// *Errors:* ConfigError.
Config read_given(const GivenConfig& given, const ReportLine& report_line);

/// Sets the number of threads (`train.threads`) and what happens if a layout lacks a product
/// (`train.layout_fallback`), and logs both. Must be called before the experiment is built, which
/// measures layouts with these threads. *Errors:* ConfigError of the `train` section.
void apply_process_options(const Config& config);

}  // namespace lacuna
