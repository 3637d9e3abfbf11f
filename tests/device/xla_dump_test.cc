// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/log.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "device/xla/dump.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class XlaDump : public ::testing::Test {
 protected:
  ~XlaDump() override {
    unsetenv("LOCKSTEP_XLA_DUMP");
    fs::remove_all(folder_);
  }
  void name(const fs::path& folder) { setenv("LOCKSTEP_XLA_DUMP", folder.c_str(), 1); }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("lockstep_dump_" + std::to_string(getpid()));
};

TEST_F(XlaDump, WritesEachProgramToAFileOfItsOwn) {
  name(folder_ / "made" / "here");
  xla::dump("module @first {}\n");
  xla::dump("module @second {}\n");
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(folder_ / "made" / "here")) {
    EXPECT_EQ(entry.path().extension(), ".mlir");
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    texts.push_back(text.str());
  }
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("module @first {}\n", "module @second {}\n"));
}

TEST_F(XlaDump, NamesHostAndProcess) {
  name(folder_);
  xla::dump("module {}\n");
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof host), 0);
  const std::string start = "program_" + std::string(host) + '_' + std::to_string(getpid()) + '_';
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_THAT(entry.path().filename().string(), ::testing::StartsWith(start));
}

TEST_F(XlaDump, WarnsWhereItCannotWrite) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "no directory";
  name(folder_ / "file");
  ::testing::internal::CaptureStderr();
  xla::dump("module {}\n");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(::testing::HasSubstr("[LOCKSTEP_XLA_DUMP] cannot write"),
                               ::testing::HasSubstr((folder_ / "file").string())));
}

TEST_F(XlaDump, WritesNothingUnasked) {
  unsetenv("LOCKSTEP_XLA_DUMP");
  xla::dump("module {}\n");
  name("");
  xla::dump("module {}\n");
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace lockstep
