// SPDX-License-Identifier: BSD-3-Clause
#include "boot/trace_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace macadam::boot {

std::string write_trace(const std::string& folder, std::uint32_t job, int rank,
                        const std::string& header, std::span<const TraceRecord> older,
                        std::span<const TraceRecord> newer) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fmt::format("the folder {} cannot be made: {}", folder, error.message());
  const std::string name = fmt::format("{}/{:06x}.{}.trace", folder, job, rank);
  std::ofstream file(name, std::ios::binary);
  const auto write = [&file](std::span<const TraceRecord> records) {
    file.write(reinterpret_cast<const char*>(records.data()),
               static_cast<std::streamsize>(records.size_bytes()));
  };
  file << header << '\n';
  write(older);
  write(newer);
  file.close();
  if (file) return {};
  return fmt::format("{} cannot be written: {}", name, std::strerror(errno));
}

Trace read_trace(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file)
    throw std::runtime_error(fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
  Trace trace;
  std::getline(file, trace.header);
  const auto header = nlohmann::json::parse(trace.header, nullptr, false);
  if (!header.is_object() || header.value("macadam", "") != "trace")
    throw std::runtime_error(name + " is no trace; MACADAM_TRACE=folder mpiexec ... writes some");
  if (header.value("record_bytes", std::size_t{0}) != sizeof(TraceRecord))
    throw std::runtime_error(name + " is of another version of Macadam, whose `macadam trace` "
                                    "reads it");
  const auto records = header.value("records", std::uint64_t{0});
  const std::uint64_t there =
      (std::filesystem::file_size(name) - trace.header.size() - 1) / sizeof(TraceRecord);
  if (there < records)
    throw std::runtime_error(fmt::format("{} is cut short: {} of {} records are there, perhaps as "
                                         "the disk was full",
                                         name, there, records));
  trace.records.resize(records);
  file.read(reinterpret_cast<char*>(trace.records.data()),
            static_cast<std::streamsize>(records * sizeof(TraceRecord)));
  return trace;
}

} // namespace macadam::boot
