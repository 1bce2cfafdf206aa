// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sim/model.h"

#include <string>

namespace macadam::sim {

class World;

// A model by the name of a preset, or by a file if there is a '/' or ".json" in the name. Throws
// base::Error naming what there is.
Model load_preset(const std::string& name);

// Name and description of every preset, a line each.
std::string describe_presets();

// The page of MACADAM_REPORT, if the ranks left any reports.
void print_reports(const World& world);

} // namespace macadam::sim
