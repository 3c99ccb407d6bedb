#include "engine/io/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/io/field_record.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_json(text, "x.json"); });
}

// The error of `read` for the object in `text`; "" if there is none.
template <class F> std::string error(const std::string& text, F&& read) {
  const Json json = parse_json(text, "x.json");
  Fields fields(json, "x.json");
  return error_of([&] { read(fields); });
}

}  // namespace

TEST_CASE("a document keeps the order of its keys, and its numbers, through a file") {
  const TemporaryFolder folder;
  const Json json = parse_json(
      R"({"zebra": 0.1, "ape": [1, -9223372036854775808, 1e300], "newt": {"b": null, "a": "é\n"}})", "x");
  write_json(folder / "x.json", json);
  CHECK(read_json(folder / "x.json") == json);
  CHECK(bytes_of(folder / "x.json").find("{\n  \"zebra\": 0.1,\n  \"ape\": [") == 0);
  CHECK(bytes_of(folder / "x.json").back() == '\n');
}

TEST_CASE("bad syntax is named with line and column, counted in characters") {
  CHECK(parse_error("{\n  \"dim\": 192\n  \"depth\": 9\n}").find("x.json: line 3, column 9: syntax error") ==
        0);
  CHECK(parse_error("{\"é\": tru}").find("x.json: line 1, column 10: ") == 0);
  CHECK(parse_error("").find("x.json: line 1, column 1: ") == 0);
  CHECK(parse_error("{\"a\": 1}\n{").find("x.json: line 2, column 1: ") == 0);
  CHECK(parse_error("[1, 2").find("x.json: line 1, column 6: ") == 0);
  CHECK(parse_error("{\"a\": \"\xff\"}").find("x.json: line 1, column ") == 0);
  CHECK(parse_error("[NaN]").find("x.json: line 1, column 2: ") == 0);
  CHECK(parse_error("[\n1e999]").find("x.json: line 2, column ") == 0);
  CHECK(parse_error(std::string(5000, 'x')).size() < 400);
}

TEST_CASE("a key given twice, and a depth that no config has, are errors") {
  CHECK(parse_error("{\"a\": {\"b\": 1},\n \"b\": 1, \"a\": 2}") ==
        "x.json: line 2, column 10: the key 'a' is given twice in one object");
  CHECK(parse_error(R"([{"a": 1}, {"a": 1}])") == "");
  CHECK(parse_error(std::string(100, '[') + std::string(100, ']')) == "");
  CHECK(parse_error(std::string(1000000, '[')).find("x.json: line 1, column 101: more than 100 levels") == 0);
}

TEST_CASE("many keys of one object keep their order") {
  std::string text;
  constexpr int keys = 100'000;
  for (int i = 0; i < keys; ++i)
    text += (i == 0 ? "{\"k" : ",\"k") + std::to_string(i) + "\":" + std::to_string(i);
  const Json json = parse_json(text + "}", "x.json");
  int i = 0;
  for (const auto& [key, value] : json.items())
    if (key == "k" + std::to_string(i) && value == i) ++i;
  CHECK(i == keys);
}

TEST_CASE("an error of read_json names the file") {
  const TemporaryFolder folder;
  put(folder / "x.json", "{");
  CHECK(error_of([&] { read_json(folder / "x.json"); }).find((folder / "x.json").string() + ": line 1") == 0);
  CHECK(error_of([&] { read_json(folder / "none.json"); }).find("cannot open it") != std::string::npos);
}

TEST_CASE("text that is not UTF-8 is not written") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { write_json(folder / "x.json", Json("\xff")); }).find("not to be written as JSON") !=
        std::string::npos);
  CHECK(folder.entries() == 0);
  write_json(folder / "x.json", Json(std::nan("")));
  CHECK(bytes_of(folder / "x.json") == "null\n");
}

TEST_CASE("fields come in every type, with fallbacks for what is left out or null") {
  const Json json =
      parse_json(R"({"i": -3, "d": 2.5, "whole": 4, "b": true, "s": "text", "none": null, "is": [1, 2],
                                   "ds": [1, 0.5], "bs": [true], "ss": ["a"], "big": 9223372036854775807})",
                 "x");
  Fields f(json, "x");
  CHECK(f.get<int>("i") == -3);
  CHECK(f.get<int64_t>("i", 7) == -3);
  CHECK(f.get<int64_t>("big") == INT64_MAX);
  CHECK(f.get<double>("d") == 2.5);
  CHECK(f.get<double>("whole") == 4.0);
  CHECK(f.get("b", false));
  CHECK(f.get<std::string>("s") == "text");
  CHECK(f.get("absent", "fallback") == "fallback");
  CHECK(f.get("none", 5) == 5);
  CHECK(f.get<std::vector<int64_t>>("is") == std::vector<int64_t>{1, 2});
  CHECK(f.get<std::vector<double>>("ds") == std::vector<double>{1, 0.5});
  CHECK(f.get<std::vector<bool>>("bs") == std::vector<bool>{true});
  CHECK(f.get<std::vector<std::string>>("ss", {}) == std::vector<std::string>{"a"});
  CHECK(f.get<std::vector<int64_t>>("absent", {1, 2}) == std::vector<int64_t>{1, 2});
  f.done();
}

TEST_CASE("without_nulls leaves out members of objects, at every depth, and nothing of a list") {
  const Json json =
      parse_json(R"({"a": null, "b": {"c": null, "d": 0}, "e": [null, {"f": null}], "g": ""})", "x");
  CHECK(without_nulls(json).dump() == R"({"b":{"d":0},"e":[null,{}],"g":""})");
  CHECK(without_nulls(Json(2)) == Json(2));
}

TEST_CASE("sub-objects, lists of them, and values as they are") {
  const Json json =
      parse_json(R"({"attention": {"heads": 3}, "stages": [{"width": 1}, {"width": 2}], "none": null,
                                   "raw": [1, {}]})",
                 "x");
  Fields f(json, "x");
  CHECK(f.has("attention"));
  CHECK_FALSE(f.has("none"));
  CHECK(f.is_list("stages"));
  CHECK_FALSE(f.is_list("attention"));
  CHECK_FALSE(f.is_list("absent"));
  CHECK(f.object("attention").get<int>("heads") == 3);
  CHECK(f.find_object("attention")->path() == "attention");
  CHECK_FALSE(f.find_object("none").has_value());
  REQUIRE(f.objects("stages").size() == 2);
  CHECK(f.objects("stages")[1].get<int>("width") == 2);
  CHECK(f.objects("absent").empty());
  CHECK(f.find("none") == nullptr);
  CHECK(f.find("raw")->size() == 2);
  f.done();
}

TEST_CASE("a wrong type is named: the key, what came, what was wanted") {
  CHECK(error(R"({"heads": "eight"})", [](Fields& f) { f.get<int64_t>("heads"); }) ==
        "x.json: heads is \"eight\", wanted an integer");
  CHECK(error(R"({"heads": 3.0})", [](Fields& f) { f.get("heads", 8); }) ==
        "x.json: heads is 3.0, wanted an integer");
  CHECK(error(R"({"b": 1})", [](Fields& f) { f.get("b", true); }) == "x.json: b is 1, wanted true or false");
  CHECK(error(R"({"d": true})", [](Fields& f) { f.get("d", 1.0); }) == "x.json: d is true, wanted a number");
  CHECK(error(R"({"s": 1})", [](Fields& f) { f.get("s", ""); }) == "x.json: s is 1, wanted a string");
  CHECK(error(R"({"l": 1})", [](Fields& f) { f.get<std::vector<int64_t>>("l"); }) ==
        "x.json: l is 1, wanted a list, each an integer");
  CHECK(error(R"({"l": [1, "2"]})", [](Fields& f) { f.get<std::vector<int64_t>>("l"); }) ==
        "x.json: l[1] is \"2\", wanted an integer");
  CHECK(error(R"({"o": [1]})", [](Fields& f) { f.object("o"); }) == "x.json: o is [1], wanted an object");
  CHECK(error(R"({"o": {}})", [](Fields& f) { f.objects("o"); }) ==
        "x.json: o is {}, wanted a list of objects");
  CHECK(error(R"({"o": {"p": [{"q": 1}]}})", [](Fields& f) {
          f.object("o").objects("p")[0].get<bool>("q");
        }) == "x.json: o.p[0].q is 1, wanted true or false");
  CHECK(error_of([] { Fields(Json(3), "x.json"); }) == "x.json: is 3, wanted an object");
  CHECK(error("{\"s\": [\"" + std::string(500, 'x') + "\"]}", [](Fields& f) { f.get("s", ""); }).size() <
        150);
}

TEST_CASE("numbers beyond their type or their range are refused") {
  CHECK(error(R"({"i": 9223372036854775808})", [](Fields& f) { f.get<int64_t>("i"); }) ==
        "x.json: i is 9223372036854775808, wanted an integer of at most 64 bits");
  CHECK(error(R"({"i": 4294967296})", [](Fields& f) { f.get<int>("i"); }) ==
        "x.json: i is 4294967296, wanted an integer of at most 32 bits");
  CHECK(error(R"({"i": -2147483649})", [](Fields& f) { f.get<int>("i"); }).find("at most 32 bits") !=
        std::string::npos);
  CHECK(error(R"({"i": 123456789012345678901234567890})", [](Fields& f) { f.get<int64_t>("i"); }) ==
        "x.json: i is 1.2345678901234568e+29, wanted an integer");
  CHECK(error(R"({"i": 0})", [](Fields& f) { f.get("i", 1, Range::at_least(1)); }) ==
        "x.json: i is 0, wanted an integer of at least 1");
  CHECK(error(R"({"d": 1.5})", [](Fields& f) { f.get<double>("d", Range::between(0, 1)); }) ==
        "x.json: d is 1.5, wanted a number from 0 to 1");
  CHECK(error(R"({"d": 0})", [](Fields& f) { f.get<double>("d", Range::above(0)); }) ==
        "x.json: d is 0, wanted a number above 0");
  CHECK(error(R"({"d": [1, 3]})", [](Fields& f) { f.get<std::vector<double>>("d", Range::at_most(2)); }) ==
        "x.json: d[1] is 3, wanted a number of at most 2");
  CHECK(error(R"({"d": 1})", [](Fields& f) { f.get<double>("d", Range::between(0, 1)); }) == "");
  const Json made = {{"i", int64_t{1} << 40}};  // signed, as programs make them
  CHECK(error_of([&] { Fields(made, "x").get<int>("i"); }) ==
        "x: i is 1099511627776, wanted an integer of at most 32 bits");
}

TEST_CASE("choices are listed, the nearest one suggested") {
  const auto scale = [](Fields& f) { return f.choice("scale", {"fixed", "learned"}, "fixed"); };
  CHECK(error(R"({"scale": "leaned"})", scale) ==
        "x.json: scale is 'leaned'; there are fixed, learned; did you mean 'learned'?");
  CHECK(error(R"({"scale": "learned"})", scale) == "");
  const Json empty = Json::object();
  Fields f(empty, "x");
  CHECK(scale(f) == "fixed");
  CHECK(error("{}", [](Fields& g) { g.choice("kind", {"a"}); }) == "x.json: kind is missing");
}

TEST_CASE("unknown and missing keys are errors that name the nearest") {
  CHECK(error(R"({"heads": 1, "head_din": 2})", [](Fields& f) {
          f.get<int>("heads");
          f.get("head_dim", 0);
          f.done();
        }) == "x.json: head_din is not known here; did you mean 'head_dim'?");
  CHECK(error(R"({"o": {"zzz": 1}})", [](Fields& f) {
          Fields o = f.object("o");
          o.get("heads", 1);
          o.done();
        }) == "x.json: o.zzz is not known here");
  CHECK(error(R"({"a\nNothing is wrong.\u001b[31m": 1})", [](Fields& f) { f.done(); }) ==
        "x.json: a\\x0aNothing is wrong.\\x1b[31m is not known here");
  CHECK(error(R"({"dept": 9})", [](Fields& f) { f.get<int>("depth"); }) ==
        "x.json: depth is missing; is 'dept' meant for it?");
  CHECK(error(R"({"directions": null})", [](Fields& f) {
          CHECK_FALSE(f.has("directions"));
          f.done();
        }).empty());
  CHECK(error(R"({"depth": null})", [](Fields& f) {
          f.get<int>("depth");
        }).find("x.json: depth is missing") == 0);
}

TEST_CASE("keys are noted once with their type, range, choices and default, whatever was left out") {
  const Json json = parse_json(R"({"stages": [{"width": 4}, {"width": 8}], "sub": {}, "kind": "b"})", "x");
  FieldRecord record;
  Fields f(json, "x");
  for (Fields& stage : f.objects("stages")) stage.get<int64_t>("width", Range::at_least(1));
  f.object("sub").get("rate", 0.5, Range::between(0, 1));
  f.find_object("none");
  f.find("elsewhere");
  f.get("any", 2.0);
  f.get("few", 2.0, Range::at_most(3));
  f.get("name", "");
  Fields(json, "y").get("name", "");  // another reader's key of the same name
  f.choice("kind", {"a", "b"}, "a");
  f.choice("kind", {"b", "c"});
  std::string text;
  for (const FieldNote& note : record.notes()) {
    text += note.where + " " + note.path + ":" + (note.type.empty() ? "" : " " + note.type);
    text +=
        std::string(note.required ? " required" : "") + (note.fallback.empty() ? "" : ", " + note.fallback);
    for (const std::string& choice : note.choices)
      text += (&choice == &note.choices[0] ? " of " : " ") + choice;
    text += "\n";
  }
  CHECK(text == R"(x stages: a list of objects
x stages[].width: an integer of at least 1 required
x sub: an object required
x sub.rate: a number from 0 to 1, 0.5
x none: an object
x elsewhere: required
x any: a number, 2.0
x few: a number of at most 3, 2.0
x name: a string, ""
y name: a string, ""
x kind: a string required, "a" of a b c
)");
}

TEST_CASE("lists of every type name the place of a value of another") {
  const auto first = [](const char* values) { return std::string("{\"l\": ") + values + "}"; };
  CHECK(error(first("[true, 1]"), [](Fields& f) { f.get<std::vector<bool>>("l"); }) ==
        "x.json: l[1] is 1, wanted true or false");
  CHECK(error(first("[\"a\", 1]"), [](Fields& f) { f.get<std::vector<std::string>>("l"); }) ==
        "x.json: l[1] is 1, wanted a string");
  CHECK(error(first("[0.5, null]"), [](Fields& f) { f.get<std::vector<double>>("l"); }) ==
        "x.json: l[1] is null, wanted a number");
  CHECK(error(first("[18446744073709551615]"), [](Fields& f) { f.get<std::vector<int64_t>>("l"); }) ==
        "x.json: l[0] is 18446744073709551615, wanted an integer of at most 64 bits");
  CHECK(error(first("[1, -1]"), [](Fields& f) { f.get<std::vector<int64_t>>("l", Range::at_least(0)); }) ==
        "x.json: l[1] is -1, wanted an integer of at least 0");
  CHECK(error(first("true"), [](Fields& f) { f.get<std::vector<bool>>("l"); }) ==
        "x.json: l is true, wanted a list, each true or false");
  CHECK(error(first("{}"), [](Fields& f) { f.get<std::vector<std::string>>("l"); }) ==
        "x.json: l is {}, wanted a list, each a string");
  CHECK(error(first("0.5"), [](Fields& f) { f.get<std::vector<double>>("l"); }) ==
        "x.json: l is 0.5, wanted a list, each a number");
  CHECK(error("{}", [](Fields& f) { f.get<std::vector<double>>("l"); }) == "x.json: l is missing");
}
