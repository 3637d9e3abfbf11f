// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <lockstep/base/log.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::ResultOf;

class Log : public testing::Test {
 protected:
  Log() {
    logging::set_sink(
        [this](logging::Level level, std::string_view text) { lines_.emplace_back(level, text); });
  }
  ~Log() override {
    logging::set_sink({});
    logging::set_prefix("");
    logging::set_level(level_);
  }

  const logging::Level level_ = logging::level();
  std::vector<std::pair<logging::Level, std::string>> lines_;
};

TEST_F(Log, ShowsLinesOfItsLevelAndAbove) {
  logging::set_level(logging::Level::warning);
  logging::debug("a");
  logging::info("b");
  logging::warning("c");
  logging::error("d");
  EXPECT_THAT(lines_,
              ElementsAre(Pair(logging::Level::warning, "c"), Pair(logging::Level::error, "d")));
  logging::set_level(logging::Level::off);
  logging::error("e");
  EXPECT_EQ(lines_.size(), 2u);
  logging::set_level(logging::Level::debug);
  logging::debug("f");
  EXPECT_EQ(lines_.back().second, "f");
}

TEST_F(Log, PutsThePrefixBeforeEachLine) {
  logging::set_level(logging::Level::info);
  logging::set_prefix("[w1] ");
  logging::info("ready {} %s");
  EXPECT_THAT(lines_, ElementsAre(Pair(logging::Level::info, "[w1] ready {} %s")));
}

// Each in a process of its own, which reads the variable as it starts.
TEST(LogDeathTest, TellsOnceOfALevelThatIsNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto log_and_exit = [] {
    logging::info("info line");
    logging::warning("warning line");
    std::exit(0);
  };
  setenv("LOCKSTEP_LOG_LEVEL", "banana", 1);
  EXPECT_EXIT(std::exit(0), ::testing::ExitedWithCode(0),
              "LOCKSTEP_LOG_LEVEL.*debug, info, warning, error or off.*\"banana\"");
  EXPECT_EXIT(
      log_and_exit(), ::testing::ExitedWithCode(0),
      AllOf(HasSubstr("warning line"), Not(HasSubstr("info line")),
            ResultOf(
                [](const std::string& text) { return text.find("banana") == text.rfind("banana"); },
                true)));
  for (const char* const level : {"", "info", "off"}) {
    setenv("LOCKSTEP_LOG_LEVEL", level, 1);
    EXPECT_EXIT(std::exit(0), ::testing::ExitedWithCode(0), Not(HasSubstr("LOCKSTEP_LOG_LEVEL")));
  }
  unsetenv("LOCKSTEP_LOG_LEVEL");
}

TEST_F(Log, KeepsLinesOfManyThreadsWhole) {
  logging::set_level(logging::Level::info);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int line = 0; line < 100; ++line) logging::info("a line");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 400u);
  for (const auto& [level, text] : lines_) EXPECT_EQ(text, "a line");
}

}  // namespace
}  // namespace lockstep
