// SPDX-License-Identifier: BSD-3-Clause
// Compiled once and loaded by every file (cmake/macadam.cmake): reading these takes most of the
// time of a compilation. Headers of the system only, so that it is seldom compiled again. Files
// include what they use all the same.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
