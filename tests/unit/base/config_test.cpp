#include "base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/config_sources.hpp"
#include "base/error.hpp"

namespace foreshard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Config make_config() {
  Config config("foreshard-test", "A command to test with.");
  config.example("foreshard-test --train.steps 3");
  config.add("train.steps", 100, "optimizer steps", {.unit = "steps", .min = 1});
  config.add("train.seed", std::uint64_t{42}, "seed");
  config.add("optimizer.lr", 3e-4, "peak learning rate", {.min = 0});
  config.add("trace.enable", true, "write a trace");
  config.add("parallel.prefetch", "pre", "backward prefetch", {.choices = {"none", "pre", "post"}});
  config.add("parallel.shard_degree", -1, "ranks a unit is sharded over");
  config.add("data.path", "", "glob of shards");
  config.add("json", false, "print JSON");
  return config;
}

/// An empty home and environment around each test.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    std::filesystem::create_directories(folder_ / "foreshard");
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  ~ConfigTest() override {
    for (const std::string& name : variables_) unsetenv(name.c_str());
    unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  void set_variable(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    variables_.push_back(name);
  }
  void parse(std::vector<const char*> words) {
    words.insert(words.begin(), "foreshard-test");
    config_.parse(static_cast<int>(words.size()), words.data());
  }
  std::string problems_of(std::vector<const char*> words) {
    try {
      parse(std::move(words));
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / fmt_name();
  Config config_ = make_config();

 private:
  static std::string fmt_name() { return "foreshard_config_test_" + std::to_string(getpid()); }
  std::vector<std::string> variables_;
};

TEST_F(ConfigTest, DefaultsHoldWithoutAnySource) {
  parse({});
  EXPECT_EQ(config_.get<int>("train.steps"), 100);
  EXPECT_EQ(config_.get<double>("optimizer.lr"), 3e-4);
  EXPECT_EQ(config_.get<std::string>("parallel.prefetch"), "pre");
  EXPECT_EQ(config_.get<std::uint64_t>("train.seed"), 42u);
  EXPECT_TRUE(config_.get<bool>("trace.enable"));
  EXPECT_EQ(config_.origin("train.steps"), "default");
  EXPECT_TRUE(config_.overrides().empty());
}

TEST_F(ConfigTest, FlagsTakeTheirValueEitherWay) {
  parse({"--train.steps=7", "--parallel.shard_degree", "-1", "--optimizer.lr", "1e-2", "--trace.enable", "false",
         "--json"});
  EXPECT_EQ(config_.get<int>("train.steps"), 7);
  EXPECT_EQ(config_.get<int>("parallel.shard_degree"), -1);
  EXPECT_EQ(config_.get<double>("optimizer.lr"), 1e-2);
  EXPECT_FALSE(config_.get<bool>("trace.enable"));
  EXPECT_TRUE(config_.get<bool>("json"));
}

TEST_F(ConfigTest, EachSourceBeatsTheWeakerOnes) {
  write("foreshard/config.ini", "[train]\nsteps = 2\n");
  const std::string first = write("a.ini", "[train]\nsteps = 3\nseed = 3\n"),
                    second = write("b.ini", "[train]\nsteps = 4\n");

  Config user = make_config();
  std::swap(user, config_);
  parse({});
  EXPECT_EQ(config_.get<int>("train.steps"), 2);

  config_ = make_config();
  parse({"--config", first.c_str(), "--config", second.c_str()});
  EXPECT_EQ(config_.get<int>("train.steps"), 4);
  EXPECT_EQ(config_.get<int>("train.seed"), 3);
  EXPECT_EQ(config_.origin("train.steps"), second + ":2");

  set_variable("FORESHARD_TRAIN__STEPS", "5");
  config_ = make_config();
  parse({"--config", second.c_str()});
  EXPECT_EQ(config_.get<int>("train.steps"), 5);
  EXPECT_EQ(config_.origin("train.steps"), "environment FORESHARD_TRAIN__STEPS");

  config_ = make_config();
  parse({"--train.steps", "6", "--config", second.c_str()});
  EXPECT_EQ(config_.get<int>("train.steps"), 6);
  EXPECT_THAT(config_.overrides(), ElementsAre("override: train.steps = 6 (from flag)"));
}

TEST_F(ConfigTest, UnknownKeysNameTheirSourceAndTheNearestKey) {
  const std::string file = write("job.ini", "# comment\n[train]\nstpes = 3\n");
  set_variable("FORESHARD_OPTIMIZER__LRR", "1");
  const std::string text = problems_of({"--train.sed=1", "--config", file.c_str(), "--no.such.thing", "5"});
  EXPECT_THAT(text, HasSubstr("job.ini:3: train.stpes: unknown key. Did you mean `train.steps`?"));
  EXPECT_THAT(text, HasSubstr("FORESHARD_OPTIMIZER__LRR: unknown key. Did you mean `FORESHARD_OPTIMIZER__LR`?"));
  EXPECT_THAT(text, HasSubstr("--train.sed: unknown option. Did you mean `--train.seed`?"));
  EXPECT_THAT(text, HasSubstr("--no.such.thing: unknown option."));
  EXPECT_THAT(text, HasSubstr("4 problems:\n  1. "));
  EXPECT_THAT(text, Not(HasSubstr("unexpected argument")));
}

TEST_F(ConfigTest, AValueMayBeEmpty) {
  set_variable("FORESHARD_DATA__PATH", "some");
  parse({"--data.path="});
  EXPECT_EQ(config_.get<std::string>("data.path"), "");
  EXPECT_EQ(config_.origin("data.path"), "flag");
}

TEST_F(ConfigTest, AnEmptyNumberIsAProblemLikeOthers) {
  EXPECT_THAT(problems_of({"--train.steps="}), HasSubstr("--train.steps: `` is not an integer"));
}

TEST_F(ConfigTest, AFlagWithoutANameIsUnknown) {
  EXPECT_THAT(problems_of({"--=3"}), HasSubstr("--: unknown option"));
  EXPECT_THAT(problems_of({"--"}), HasSubstr("--: unknown option"));
}

TEST_F(ConfigTest, AbbreviationsAreNotGuessed) {
  EXPECT_THAT(problems_of({"--train.step=3"}),
              HasSubstr("--train.step: unknown option. Did you mean `--train.steps`?"));
}

TEST_F(ConfigTest, ASingleUnderscoreInTheEnvironmentIsNotSilentlyIgnored) {
  set_variable("FORESHARD_TRAIN_STEPS", "3");
  EXPECT_THAT(problems_of({}), HasSubstr("FORESHARD_TRAIN_STEPS: unknown key. Did you mean `FORESHARD_TRAIN__STEPS`?"));
}

TEST_F(ConfigTest, OtherVariablesOfOursAreLeftAlone) {
  set_variable("FORESHARD_BUILD_JOBS", "3");
  EXPECT_EQ(problems_of({}), "");
}

TEST_F(ConfigTest, BadValuesSayWhatWasSeenAndExpected) {
  const std::string text = problems_of({"--train.steps", "0", "--optimizer.lr=fast", "--parallel.prefetch", "prre",
                                        "--trace.enable=maybe", "--train.seed=1.5", "--data.path"});
  EXPECT_THAT(text, HasSubstr("--train.steps: `0` is not an integer of at least 1"));
  EXPECT_THAT(text, HasSubstr("--optimizer.lr: `fast` is not a number of at least 0"));
  EXPECT_THAT(text, HasSubstr("--parallel.prefetch: `prre` is not one of none, pre, post. Did you mean `pre`?"));
  EXPECT_THAT(text, HasSubstr("--trace.enable: `maybe` is not a boolean"));
  EXPECT_THAT(text, HasSubstr("--train.seed: `1.5` is not an integer"));
  EXPECT_THAT(text, HasSubstr("--data.path: needs a value: glob of shards"));
}

TEST_F(ConfigTest, NumbersMustBeFinite) {
  EXPECT_THAT(problems_of({"--optimizer.lr=nan"}), HasSubstr("is not a number"));
  EXPECT_THAT(problems_of({"--optimizer.lr=inf"}), HasSubstr("is not a number"));
}

TEST_F(ConfigTest, AnIntegerTooLargeForItsReaderIsAnError) {
  parse({"--train.steps=4000000000"});
  EXPECT_EQ(config_.get<std::int64_t>("train.steps"), 4000000000);
  EXPECT_THROW(config_.get<int>("train.steps"), InputError);
}

TEST_F(ConfigTest, FilesThatCannotBeReadAreProblems) {
  EXPECT_THAT(problems_of({"--config", "/no/such/file.ini"}), HasSubstr("/no/such/file.ini: cannot be read"));
  EXPECT_THAT(problems_of({"--config", folder_.c_str()}), HasSubstr("it is a folder"));
  const std::string file = write("bad.ini", "[train]\nsteps 3\n");
  EXPECT_THAT(problems_of({"--config", file.c_str()}), HasSubstr("bad.ini:2: `steps 3` is neither"));
}

TEST_F(ConfigTest, AFileOfBytesIsOneProblem) {
  const std::string bytes = write("bytes.ini", "a\x1B[2J\xFF\xFE" + std::string(100000, 'x') + "\nsteps 3\n");
  EXPECT_THAT(problems_of({"--config", bytes.c_str()}),
              AllOf(HasSubstr("`a?[2J…` is neither"), Not(HasSubstr("problems"))))
      << "no terminal obeys a file";
}

TEST_F(ConfigTest, IniCommentsAndBlanks) {
  const std::string file = write("c.ini", "; first\n\n [train]  # here\n steps=9 # there\n[data]\npath = a#b*.bin\r\n");
  parse({"--config", file.c_str()});
  EXPECT_EQ(config_.get<int>("train.steps"), 9);
  EXPECT_EQ(config_.get<std::string>("data.path"), "a#b*.bin");
}

TEST_F(ConfigTest, ResolvedIniRunsTheSameAgain) {
  parse(
      {"--train.steps=7", "--optimizer.lr=0.1234567890123", "--data.path", "x y*.bin", "--trace.enable=off", "--json"});
  const std::string file = write("resolved.ini", config_.resolved_ini());
  EXPECT_THAT(config_.resolved_ini(), HasSubstr("# optimizer steps (from flag)\nsteps = 7\n"));
  EXPECT_THAT(config_.resolved_ini(), Not(HasSubstr("json")));
  const nlohmann::json before = config_.to_json();
  config_ = make_config();
  parse({"--config", file.c_str()});
  EXPECT_EQ(config_.to_json(), before);
  EXPECT_EQ(before["train"]["steps"], 7);
  EXPECT_EQ(before["trace"]["enable"], false);
  EXPECT_EQ(before["optimizer"]["lr"], 0.1234567890123);
}

TEST_F(ConfigTest, OptionsOfTheCommandLineAreNotForFiles) {
  const std::string file = write("j.ini", "json = true\n");
  EXPECT_THAT(problems_of({"--config", file.c_str()}), HasSubstr("j.ini:1: json: unknown key"));
}

TEST_F(ConfigTest, KeysOfOtherCommandsAreIgnoredInFilesOnly) {
  config_.ignore({"checkpoint.", "machine.file"});
  const std::string file = write("o.ini", "[checkpoint]\nkeep = 3\n[machine]\nfile = m.json\n[train]\nsteps = 8\n");
  parse({"--config", file.c_str()});
  EXPECT_EQ(config_.get<int>("train.steps"), 8);
  EXPECT_THAT(problems_of({"--no.such.thing=1"}), Not(HasSubstr("another command")));
  EXPECT_THAT(problems_of({"--machine.file=m.json"}),
              ::testing::AllOf(HasSubstr("--machine.file: unknown option"), HasSubstr("key of another command")));
}

TEST_F(ConfigTest, ArgumentsAreTakenOnlyWhereDeclared) {
  EXPECT_THAT(problems_of({"extra"}), HasSubstr("unexpected argument `extra`"));
  config_ = make_config();
  config_.add_arguments("MEASURED PREDICTED", "two traces", 2, 2);
  parse({"--json", "a.h5", "--train.steps", "3", "b.h5"});
  EXPECT_THAT(config_.arguments(), ElementsAre("a.h5", "b.h5"));
  config_ = make_config();
  config_.add_arguments("MEASURED PREDICTED", "two traces", 2, 2);
  EXPECT_THAT(problems_of({"a.h5"}), HasSubstr("1 argument(s) given, foreshard-test needs 2: MEASURED PREDICTED"));
}

TEST_F(ConfigTest, HelpWorksBesideMistakes) {
  parse({"--nonsense", "-h"});
  ASSERT_TRUE(config_.help_wanted());
  const std::string help = config_.help();
  EXPECT_THAT(help, HasSubstr("[default: 100 steps; env: FORESHARD_TRAIN__STEPS]"));
  EXPECT_THAT(help, HasSubstr("--parallel.prefetch none|pre|post"));
  EXPECT_LT(help.find("Examples:"), help.find("Options"));
}

TEST(EnvironmentName, DoublesTheDot) {
  EXPECT_EQ(environment_name("train.local_batch_size"), "FORESHARD_TRAIN__LOCAL_BATCH_SIZE");
}

}  // namespace
}  // namespace foreshard
