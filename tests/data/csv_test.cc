// SPDX-License-Identifier: Apache-2.0
// Text and compressed bytes from outside, hostile ones included.
#include <gmock/gmock.h>
#include <lockstep/base/error.h>
#include <lockstep/data/csv.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "data/gzip.h"
#include "data/helpers.h"
#include "support/errors.h"
#include "support/values.h"

namespace lockstep::data {
namespace {

using lockstep::testing::caught;
using lockstep::testing::holds;
using lockstep::testing::throws;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Row {
  Tensor features, label;
};
struct Person {
  Tensor age, income, city;
};

template <class T = Tensor>
T whole(std::string_view text, const CsvOptions& options = {}) {
  auto iterator = from_csv_text<T>(text, options).batch(1000).iterator();
  return iterator.next().value();
}

const CsvOptions kPlain{.header = false};

TEST(FromCsv, GivesTheRowsOfAllColumns) {
  const Tensor rows = whole("a,b\n1,-2.5\n3e2,0.125\n");
  EXPECT_EQ(rows.shape(), Shape({2, 2}));
  EXPECT_THAT(rows, holds({1, -2.5, 300, 0.125}));
  EXPECT_THAT(whole("1,2\r\n3,4", kPlain), holds({1, 2, 3, 4}));
  EXPECT_EQ(from_csv_text<Tensor>("a,b\n").cardinality(), 0);
}

TEST(FromCsv, PutsTheLabelApart) {
  const Row rows =
      whole<Row>("x,y,z\n1,0,2\n3,1,4\n", {.label = CsvColumn{.name = "y", .dtype = DType::i64}});
  EXPECT_THAT(rows.features, holds({1, 2, 3, 4}));
  EXPECT_THAT(rows.label, holds<std::int64_t>({0, 1}));
  EXPECT_EQ(rows.label.shape(), Shape({2}));
  const Row last = whole<Row>("5,6,7\n", {.header = false,
                                          .columns = {{.name = "2"}, {.name = "0"}},
                                          .label = CsvColumn{.name = "1"}});
  EXPECT_THAT(last.features, holds({7, 5}));
  EXPECT_THAT(last.label, holds({6}));
}

TEST(FromCsv, GivesEachColumnItsDType) {
  const CsvOptions options{.columns = {{.name = "age", .dtype = DType::i32},
                                       {.name = "income", .dtype = DType::f64},
                                       {.name = "city",
                                        .dtype = DType::i64,
                                        .categories = {"Rome", "Paris, Texas", "say \"Oslo\""}}}};
  const Person people = whole<Person>(
      "income,skipped,city,age\n"
      "0.1,?,\"Paris, Texas\",41\n"
      "1e300,?,\"say \"\"Oslo\"\"\",-7\n"
      "2,?,Rome,2147483647\n",
      options);
  EXPECT_THAT(people.age, holds<std::int32_t>({41, -7, 2147483647}));
  EXPECT_THAT(people.income, holds<double>({0.1, 1e300, 2}));
  EXPECT_THAT(people.city, holds<std::int64_t>({1, 2, 0}));
}

TEST(FromCsv, KeepsIntegersBeyondDoubles) {
  const CsvOptions options{.header = false, .columns = {{.name = "0", .dtype = DType::i64}}};
  EXPECT_THAT(whole("9007199254740993\n-9223372036854775808\n", options),
              holds<std::int64_t>({9007199254740993, INT64_MIN}));
}

TEST(FromCsv, PutsDefaultsForMissingFields) {
  const CsvOptions options{
      .columns = {{.name = "a", .missing = -1}, {.name = "b"}}, .missing = 7, .na_value = "NA"};
  EXPECT_THAT(whole("a,b\n,2\n3,NA\nNA,\"\"\n", options), holds({-1, 2, 3, 7, -1, 7}));
  EXPECT_THAT([] { whole("a,b\n1,\n"); },
              throws<DataLoss>("the text, line 2, column \"b\"", "missing"));
}

TEST(FromCsv, PutsADefaultForALabelOnlyOfItsOwn) {
  CsvOptions options{.label = CsvColumn{.name = "y"}, .missing = 7};
  EXPECT_THAT(whole<Row>("x,y\n,1\n", options).features, holds({7}));
  EXPECT_THAT([&] { whole<Row>("x,y\n1,2\n3,\n", options); },
              throws<DataLoss>("line 3, column \"y\"", "missing"));
  options.label->missing = -1;
  EXPECT_THAT(whole<Row>("x,y\n1,2\n3,\n", options).label, holds({2, -1}));
}

TEST(FromCsv, TakesForACategoryWhatWouldBeMissing) {
  const CsvOptions options{
      .columns = {{.name = "c", .missing = -1, .categories = {"red", "", "NA"}}}, .na_value = "NA"};
  EXPECT_THAT(whole("c,d\n,1\nred,2\nNA,3\n\"\",4\n", options), holds({1, 0, 2, 1}));
}

TEST(FromCsv, PassesOverLinesOfBlanks) {
  EXPECT_THAT(whole("  \na,b\n\t \n1,2\n  \r\n3,4\n  "), holds({1, 2, 3, 4}));
  EXPECT_THAT(whole("a\n1\n \n2\n", {.missing = 0}), holds({1, 2}));
  EXPECT_THAT(whole("a\tb\n1\t2\n \n\t\n", {.missing = -1, .delimiter = '\t'}),
              holds({1, 2, -1, -1}));
  EXPECT_THAT([] { whole("a\n1\n \nx\n"); }, throws<DataLoss>("line 4"));
}

TEST(FromCsv, TakesForZeroWhatIsTooSmall) {
  using namespace std::string_literals;
  EXPECT_THAT(whole("1e-50,1e-320,1e-400,-1E-9999999999\n", kPlain), holds({0, 0, 0, 0}));
  const std::string zeros(400, '0');
  EXPECT_THAT(whole("0." + zeros + "1,1" + zeros + "e-800,0.1e-323\n", kPlain), holds({0, 0, 0}));
  for (const std::string& large : {"1e400"s, "1e+9999999999"s, "1" + zeros + "e-9", "0.001e312"s})
    EXPECT_THAT([&] { whole(large + "\n", kPlain); }, throws<DataLoss>("expected a number of f32"))
        << large;
  const CsvOptions wide{.header = false, .columns = {{.name = "0", .dtype = DType::f64}}};
  EXPECT_THAT(whole("1e-310\n1e-400\n", wide), holds<double>({1e-310, 0}));
}

TEST(FromCsv, ReadsWhatProgramsWrite) {
  EXPECT_THAT(whole("\xef\xbb\xbf\"a\",b\r\n 1 ,\t2\r\n\r\n\"3\" ,+4\r\n\n"), holds({1, 2, 3, 4}));
  EXPECT_THAT(whole("a;b\n1;2\n", {.delimiter = ';'}), holds({1, 2}));
  EXPECT_THAT(whole("a\tb\n1\t2\n", {.delimiter = '\t'}), holds({1, 2}));
  EXPECT_THAT(whole("a,b\r1,2\r\r3,4\r"), holds({1, 2, 3, 4}));
  EXPECT_THAT(whole("a, \"b\"\n1, \"2\" \n", {.columns = {{.name = "b"}}}), holds({2}));
  EXPECT_THAT(whole("a\tb\n\t \"2\"\n", {.missing = -1, .delimiter = '\t'}), holds({-1, 2}));
}

TEST(FromCsv, NamesLineAndColumnOfWhatIsNoNumber) {
  for (const char* text :
       {"1,2\n3,x\n", "1,2\n3,1 2\n", "1,2\n3,nan\n", "1,2\n3,inf\n", "1,2\n3,1e999\n",
        "1,2\n3,1e39\n", "1,2\n3,0x1\n", "1,2\n3,+-4\n", "1,2\n3,1.5.\n", "1,2\n3,\"1\n2\"\n"})
    EXPECT_THAT(
        [&] { whole(text, kPlain); },
        throws<DataLoss>("[from_csv_text] the text, line 2, column \"1\": expected a number"))
        << text;
  EXPECT_THAT([] { whole(std::string_view("1,2\0,3\n", 7), kPlain); }, throws<DataLoss>());
  const CsvOptions integers{.header = false, .columns = {{.name = "0", .dtype = DType::i32}}};
  for (const char* text : {"1.5\n", "2147483648\n", "1e3\n"})
    EXPECT_THAT([&] { whole(text, integers); }, throws<DataLoss>("line 1", "number of i32"));
  // A quoted field of two lines counts as two.
  EXPECT_THAT([] { whole("a,b\n1,2\n\"\n3\",4\n5,x\n", {.columns = {{.name = "b"}}}); },
              throws<DataLoss>("line 5, column \"b\"", "\"x\""));
  EXPECT_THAT([] { whole("a,b\r1,2\r\"\r3\",4\r5,x\r", {.columns = {{.name = "b"}}}); },
              throws<DataLoss>("line 5, column \"b\"", "\"x\""));
}

TEST(FromCsv, RefusesDamagedTables) {
  EXPECT_THAT([] { whole("1,2\n3\n", kPlain); },
              throws<DataLoss>("line 2", "expected 2 fields, got 1"));
  EXPECT_THAT([] { whole("a\n1,2\n"); }, throws<DataLoss>("line 2", "expected 1 fields, got 2"));
  EXPECT_THAT([] { whole(""); }, throws<DataLoss>("the file is empty"));
  EXPECT_THAT([] { whole("a\n\"1\n2\n"); }, throws<DataLoss>("line 2", "quote"));
  EXPECT_THAT([] { whole("a,b\n\"1\"2,3\n"); }, throws<DataLoss>("line 2", "closing quote"));
  EXPECT_THAT([] { whole("a,a\n1,2\n"); }, throws<DataLoss>("two columns \"a\""));
  const CsvOptions colours{.columns = {{.name = "c", .categories = {"red", "blue"}}}};
  EXPECT_THAT([&] { whole("c\nred\ngreen\n", colours); },
              throws<DataLoss>("line 3, column \"c\"", "\"red\", \"blue\"", "got \"green\""));
}

TEST(FromCsv, RefusesOptionsThatNoTableFits) {
  EXPECT_THAT([] { whole("a,b\n1,2\n", {.columns = {{.name = "c"}}}); },
              throws<InvalidArgument>("no column \"c\"", "\"a\", \"b\""));
  EXPECT_THAT([] { whole("a\n1\n", {.label = CsvColumn{.name = "a"}}); },
              throws<InvalidArgument>("two tensors"));
  EXPECT_THAT([] { whole<Row>("a\n1\n", {.label = CsvColumn{.name = "a"}}); },
              throws<InvalidArgument>("besides the label"));
  EXPECT_THAT([] { whole<Person>("a,b\n1,2\n"); },
              throws<InvalidArgument>("a T of 2 tensors", "got 3"));
  EXPECT_THAT([] { whole("a\n", {.columns = {{.name = "a", .dtype = DType::u8}}}); },
              throws<InvalidArgument>("column \"a\"", "u8"));
  EXPECT_THAT(
      [] {
        whole("a,b\n", {.columns = {{.name = "a"}, {.name = "b", .dtype = DType::i64}}});
      },
      throws<InvalidArgument>("one dtype", "f32", "i64"));
  EXPECT_THAT(
      [] { whole("a\n", {.columns = {{.name = "a", .dtype = DType::i32, .missing = 0.5}}}); },
      throws<InvalidArgument>("0.5"));
  EXPECT_THAT([] { whole("a\n\n1\n", {.missing = 1e39}); },
              throws<InvalidArgument>("column \"a\" is f32", "1e+39"));
  EXPECT_TRUE(std::isnan(whole("a,b\n1,\n", {.missing = NAN}).data<float>()[1]));
  EXPECT_THAT(
      [] {
        whole("c\nred\n", {.columns = {{.name = "c", .categories = {"red", "red"}}}});
      },
      throws<InvalidArgument>("column \"c\"", "two categories \"red\""));
  const auto error = caught<InvalidArgument>([] { from_csv<Tensor>({}); });
  EXPECT_EQ(error->location().line, __LINE__ - 1);
  EXPECT_THAT([] { from_csv<Tensor>({"no/such.csv"}); },
              throws<Unavailable>("[from_csv]", "no/such.csv"));
}

TEST(FromCsv, ShowsOnlyTheBeginningOfALongField) {
  const auto error = caught<DataLoss>([] { whole(std::string(1 << 20, 'x') + ",1\n", kPlain); });
  EXPECT_LT(error->message().size(), 200u);
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

TEST(Gunzip, ReadsOneMemberAfterTheOther) {
  std::vector<unsigned char> two = gzip("1,2\n");
  const std::vector<unsigned char> second = gzip("3,4\n");
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(gunzip(two, "x.gz", 100), "1,2\n3,4\n");
  two.push_back('x');
  EXPECT_THROW(gunzip(two, "x.gz", 100), DataLoss);
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

class CsvFiles : public ::testing::Test {
 protected:
  CsvFiles() { std::filesystem::create_directories(folder_); }
  ~CsvFiles() override { std::filesystem::remove_all(folder_); }

  template <class Bytes>
  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return path;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("lockstep_csv_" + std::to_string(getpid()));
};

TEST_F(CsvFiles, AreReadOneAfterTheOtherByTheNamesOfTheirColumns) {
  const std::string plain = write("a.csv", std::string("x,y\n1,2\n"));
  const std::string zipped = write("b.csv.gz", gzip("y,z,x\n4,9,3\n6,9,5\n"));
  const auto rows = from_csv<Tensor>({plain, zipped});
  EXPECT_EQ(rows.cardinality(), 3);
  EXPECT_THAT(*rows.batch(3).iterator().next(), holds({1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(
      [&] {
        from_csv<Tensor>({zipped, plain});
      },
      throws<DataLoss>("a.csv, line 1", "expected a column \"z\""));
}

TEST_F(CsvFiles, WithoutHeadersHaveLinesOfOneLength) {
  const std::string two = write("two.csv", std::string("1,2\n"));
  const std::string three = write("three.csv", std::string("3,4,5\n"));
  EXPECT_THAT(
      [&] {
        from_csv<Tensor>({two, three}, kPlain);
      },
      throws<DataLoss>("three.csv, line 1", "expected 2 fields", "got 3"));
}

TEST_F(CsvFiles, NameTheFileThatIsDamaged) {
  const std::string good = write("good.csv", std::string("x\n1\n"));
  const std::string bad = write("bad.csv", std::string("x\n1\noops\n"));
  EXPECT_THAT(
      [&] {
        from_csv<Tensor>({good, bad});
      },
      throws<DataLoss>("[from_csv]", "bad.csv, line 3, column \"x\"", "\"oops\""));
  std::vector<unsigned char> cut = gzip("x\n1\n2\n3\n4\n");
  cut.resize(cut.size() - 3);
  const std::string torn = write("torn.csv.gz", cut);
  EXPECT_THAT([&] { from_csv<Tensor>({torn}); }, throws<DataLoss>("torn.csv.gz", "cut short"));
}

TEST_F(CsvFiles, GoOnAndAreDealtAsOtherSources) {
  std::string text = "id\n";
  for (int i = 0; i < 20; ++i) text += std::to_string(i) + "\n";
  const std::string path = write("ids.csv", text);
  const auto ids = [&] {
    return from_csv<std::tuple<Tensor>>({path}, {.columns = {{.name = "id", .dtype = DType::i64}}})
        .map([](const std::tuple<Tensor>& id) { return std::get<0>(id); });
  };
  Integers all;
  for (int shard = 0; shard < 3; ++shard)
    for (const std::int64_t id : values_of(ids().shard(3, shard))) all.push_back(id);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, iota(20));

  const auto shuffled = ids().shuffle({.seed = 3}).batch(4);
  const std::vector<Integers> whole_epoch = elements_of(shuffled);
  auto walk = ids().shuffle({.seed = 3}).batch(4).iterator();
  walk.next();
  walk.next();
  const StateMap saved = save(walk);
  auto resumed = ids().shuffle({.seed = 3}).batch(4).iterator();
  restore(resumed, saved);
  EXPECT_EQ(drain(resumed), std::vector<Integers>(whole_epoch.begin() + 2, whole_epoch.end()));
}

}  // namespace
}  // namespace lockstep::data
