// SPDX-License-Identifier: Apache-2.0
// Text and compressed bytes from outside, hostile ones included.
#include "data/csv.h"

#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <zlib.h>

#include "data/gzip.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParseCsv, ReadsNumbersByLine) {
  const CsvTable table = parse_csv("1,-2.5\n3e2,0.125\n", 2, "x.csv");
  EXPECT_EQ(table.rows, 2);
  EXPECT_THAT(table.values, ElementsAre(1, -2.5, 300, 0.125));
  EXPECT_EQ(table.at(1, 0), 300);
}

TEST(ParseCsv, TakesBothLineEndsAndAnUnfinishedLastLine) {
  EXPECT_THAT(parse_csv("1,2\r\n3,4", 2, "x.csv").values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(parse_csv("", 2, "x.csv").rows, 0);
}

TEST(ParseCsv, NamesFileAndLineOfWhatIsNoNumber) {
  for (const char* text :
       {"1,2\n3,x\n", "1,2\n3,\n", "1,2\n3,4 \n", "1,2\n3, 4\n", "1,2\n3,nan\n", "1,2\n3,inf\n",
        "1,2\n3,1e999\n", "1,2\n3,0x1\n", "1,2\n3,+4\n", "1,2\n\n3,4\n"})
    EXPECT_THAT([&] { parse_csv(text, 2, "x.csv"); },
                ThrowsMessage<DataLoss>(HasSubstr("x.csv, line 2: ")))
        << text;
  EXPECT_THROW(parse_csv(std::string_view("1,2\0,3\n", 7), 2, "x.csv"), DataLoss);
}

TEST(ParseCsv, RefusesTooFewAndTooManyFields) {
  EXPECT_THAT(
      [] { parse_csv("1,2\n3\n", 2, "x.csv"); },
      ThrowsMessage<DataLoss>(AllOf(HasSubstr("line 2"), HasSubstr("expected 2 fields, got 1"))));
  EXPECT_THAT([] { parse_csv("1,2,3\n", 2, "x.csv"); },
              ThrowsMessage<DataLoss>(AllOf(HasSubstr("line 1"), HasSubstr("more than 2 fields"))));
}

TEST(ParseCsv, ShowsOnlyTheBeginningOfALongField) {
  try {
    parse_csv(std::string(1 << 20, 'x'), 2, "x.csv");
    FAIL();
  } catch (const DataLoss& error) {
    EXPECT_LT(error.message().size(), 200u);
  }
}

std::vector<unsigned char> gzip(std::string text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<unsigned char> out(deflateBound(&stream, text.size()));
  stream.next_in = reinterpret_cast<unsigned char*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gunzip, GivesBackWhatWasCompressed) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += std::to_string(i) + ",";
  EXPECT_EQ(gunzip(gzip(text), "x.gz", 1 << 20), text);
  EXPECT_EQ(gunzip(gzip(""), "x.gz", 10), "");
}

TEST(Gunzip, RefusesDamage) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i * i) + ",";
  const std::vector<unsigned char> good = gzip(text);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{9}, good.size() / 2, good.size() - 1})
    EXPECT_THAT([&] { gunzip(std::span(good).first(length), "x.gz", 1 << 20); },
                ThrowsMessage<DataLoss>(AllOf(HasSubstr("x.gz"), HasSubstr("cut short"))))
        << length;
  for (std::size_t i = 0; i < good.size(); i += 7) {
    if (i >= 4 && i < 10) continue;  // time stamp, flags and system in the header mean nothing
    std::vector<unsigned char> bad = good;
    bad[i] ^= 0x55;
    EXPECT_THROW(gunzip(bad, "x.gz", 1 << 20), DataLoss) << i;
  }
  const std::string plain = "1,2,3\n";
  EXPECT_THROW(gunzip(std::span(reinterpret_cast<const unsigned char*>(plain.data()), plain.size()),
                      "x.gz", 100),
               DataLoss);
}

TEST(Gunzip, StopsAtTheLimit) {
  const std::vector<unsigned char> bomb = gzip(std::string(1 << 24, '0'));
  EXPECT_LT(bomb.size(), 20000u);
  EXPECT_THAT([&] { gunzip(bomb, "x.gz", 1 << 20); },
              ThrowsMessage<DataLoss>(HasSubstr("more data than expected")));
}

}  // namespace
}  // namespace lockstep::data
