// SPDX-License-Identifier: BSD-3-Clause
#include "boot/configuration.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace macadam::boot {
namespace {

namespace fs = std::filesystem;

// A home of its own, and no settings in the environment but those of the test.
struct Tuned : testing::Test {
  Tuned() {
    std::string name = (fs::temp_directory_path() / "macadam-test.XXXXXX").string();
    home = mkdtemp(name.data());
    setenv("XDG_CONFIG_HOME", home.c_str(), 1);
    unsetenv("MACADAM_SHM_EAGER");
    unsetenv("MACADAM_SHM_HYBRID");
  }
  ~Tuned() override {
    unsetenv("MACADAM_SHM_EAGER");
    fs::remove_all(home);
  }

  void put(const std::string& text) {
    fs::create_directories(home / "macadam");
    std::ofstream(tuned_file()) << text;
    fs::permissions(tuned_file(), fs::perms::owner_read | fs::perms::owner_write);
  }
  // The one warning of reading; the file must not have had any effect.
  std::string refusal(ReadLevels read_levels = nullptr) {
    const Configuration read = read_configuration(read_levels);
    EXPECT_EQ(read.file, "");
    EXPECT_EQ(read.settings.shm_eager, base::Settings{}.shm_eager);
    EXPECT_EQ(read.warnings.size(), 1u);
    return read.warnings.empty() ? "" : read.warnings[0];
  }
  static void expect_in(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
      EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
  }

  fs::path home;
};

TEST_F(Tuned, is_not_there) {
  const Configuration read = read_configuration();
  EXPECT_EQ(read.file, "");
  EXPECT_TRUE(read.warnings.empty());
  EXPECT_EQ(read.settings.shm_eager, base::Settings{}.shm_eager);
}

TEST_F(Tuned, goes_before_the_defaults_and_the_environment_before_it) {
  put("# measured\n\nshm_eager = 16K # bytes\n  shm_hybrid=32768\r\nprotocols = sender");
  setenv("MACADAM_SHM_EAGER", "4K", 1);
  const Configuration read = read_configuration();
  EXPECT_TRUE(read.warnings.empty());
  EXPECT_EQ(read.file, (home / "macadam/tuned.conf").string());
  EXPECT_EQ(read.settings.shm_eager, 4 << 10);
  EXPECT_EQ(read.without_environment.shm_eager, 16 << 10);
  EXPECT_EQ(read.settings.shm_hybrid, 32 << 10);
  EXPECT_EQ(read.settings.protocols, base::Protocols::sender);
  EXPECT_EQ(read_environment_only().settings.shm_hybrid, base::Settings{}.shm_hybrid);
}

TEST_F(Tuned, measurements_are_no_settings_of_users) {
  put("rdma_driver = 128.00 16.00 64.00 16.00 23552.00\n");
  const Configuration read = read_configuration();
  EXPECT_EQ(read.file, tuned_file());
  EXPECT_EQ(read.settings.rdma_driver, "128.00 16.00 64.00 16.00 23552.00");
}

TEST_F(Tuned, damaged_is_ignored_as_a_whole) {
  put("shm_eager = 16K\nshm_hybird = 64K\n");
  expect_in(refusal(), {"tuned.conf", "line 2", "shm_hybird", "shm_hybrid", "macadam tune"});
  put("shm_eager = 16K\nshm_hybrid = lots\n");
  expect_in(refusal(), {"line 2", "'lots'", "a number of bytes", "remove it"});
  put("levels = bad\nshm_eager = 16K\n");
  expect_in(refusal([](const std::string& levels) { base::fail(MPI_ERR_ARG, "no {}", levels); }),
            {"line 1: no bad;"});
  put("shm_eager = 16K\n\n\nshm_hybrid\n");
  expect_in(refusal(), {"line 4", "'shm_hybrid'", "name = value"});
  put("shm_eager = 16K\n" + std::string(100'000, '#'));
  expect_in(refusal(), {"longer than 65536 bytes"});
  put(std::string("shm_eager = 16K\nsh\0m", 20));
  expect_in(refusal(), {"line 2"});
}

TEST_F(Tuned, that_others_may_have_written_is_ignored) {
  put("shm_eager = 16K\n");
  ASSERT_EQ(chmod(tuned_file().c_str(), 0664), 0);
  expect_in(refusal(), {"others may write", "664", "chmod go-w"});
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chmod(tuned_file().c_str(), 0644), 0);
  ASSERT_EQ(chown(tuned_file().c_str(), 12345, 12345), 0);
  expect_in(refusal(), {"belongs to user 12345"});
  EXPECT_THROW(write_tuned_file(tuned_file(), "shm_eager = 8K\n"), base::Error);
}

TEST_F(Tuned, that_is_no_file_is_ignored) {
  fs::create_directories(tuned_file());
  expect_in(refusal(), {"no regular file"});
  fs::remove(tuned_file());
  ASSERT_EQ(mkfifo(tuned_file().c_str(), 0600), 0);
  expect_in(refusal(), {"no regular file"});
}

TEST_F(Tuned, is_written_as_a_whole) {
  fs::remove_all(home);
  write_tuned_file(tuned_file(), "shm_eager = 16K\n");
  EXPECT_EQ(read_configuration().settings.shm_eager, 16 << 10);
  write_tuned_file(tuned_file(), "shm_eager = 32K\n");
  EXPECT_EQ(read_configuration().settings.shm_eager, 32 << 10);
  EXPECT_EQ(std::distance(fs::directory_iterator(home / "macadam"), {}), 1); // nothing is left
}

TEST_F(Tuned, is_not_written_where_it_cannot_be) {
  const auto refused = [](const std::string& path) {
    try {
      write_tuned_file(path, "shm_eager = 16K\n");
    } catch (const base::Error& error) {
      return error.text;
    }
    return std::string("it was written");
  };
  std::ofstream(home / "file") << "x";
  expect_in(refused(home / "file/macadam/tuned.conf"), {"cannot be written", "--output"});
  fs::create_directories(home / "macadam");
  std::ofstream(home / "precious") << "precious";
  fs::create_symlink(home / "precious", tuned_file());
  expect_in(refused(tuned_file()), {"no file of this user"});
  std::stringstream precious;
  precious << std::ifstream(home / "precious").rdbuf();
  EXPECT_EQ(precious.str(), "precious");
}

} // namespace
} // namespace macadam::boot
