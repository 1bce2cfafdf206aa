// SPDX-License-Identifier: BSD-3-Clause
#include "prove/program.h"

#include "fmt/format.h"

#include <array>
#include <charconv>
#include <stdexcept>

namespace macadam::prove {
namespace {

using What = Step::What;

struct Name {
  What what;
  const char* text;
  // p: peer, t: tag, c: partitions, b: bytes, n: number, k: partition
  const char* operands;
};
constexpr std::array names = {
    Name{What::send, "send", "ptb"},
    Name{What::synchronous_send, "ssend", "ptb"},
    Name{What::exchange_send, "xsend", "ptb"},
    Name{What::nonblocking_send, "isend", "ptb"},
    Name{What::receive, "recv", "ptb"},
    Name{What::probe, "probe", "pt"},
    Name{What::match_probe, "mprobe", "pt"},
    Name{What::receive_matched, "mrecv", "b"},
    Name{What::cancel, "cancel", "n"},
    Name{What::withdraw, "withdraw", "n"},
    Name{What::wait, "wait", "n"},
    Name{What::free_context, "free", ""},
    Name{What::partitioned_send, "psend", "ptcb"},
    Name{What::partitioned_receive, "precv", "ptcb"},
    Name{What::start_round, "start", "n"},
    Name{What::mark_ready, "ready", "nk"},
    Name{What::mark_only, "mark", "nk"},
    Name{What::end_round, "end", "n"},
};

const Name& name_of(What what) {
  for (const Name& name : names) {
    if (name.what == what) return name;
  }
  throw std::logic_error("a step without a name");
}

std::string show_or_any(int value, int any) {
  return value == any ? "*" : std::to_string(value);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) found.push_back(word);
  }
  return found;
}

int number(std::string_view text, std::string_view step) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    throw std::invalid_argument(fmt::format("\"{}\" in \"{}\": a number is needed", text, step));
  }
  return value;
}

Step parse_step(std::string_view text) {
  std::vector<std::string_view> parts = words(text);
  Step step;
  if (parts.back().front() == '@') {
    step.context = number(parts.back().substr(1), text);
    parts.pop_back();
  }
  for (const Name& name : names) {
    if (parts.empty() || parts[0] != name.text) continue;
    const std::string_view operands = name.operands;
    if (parts.size() != 1 + operands.size()) {
      throw std::invalid_argument(
          fmt::format("\"{}\": {} operands, needed {}", text, parts.size() - 1, operands.size()));
    }
    step.what = name.what;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::string_view value = parts[i + 1];
      switch (operands[i]) {
      case 'p':
        step.peer = value == "*" ? MPI_ANY_SOURCE : number(value, text);
        break;
      case 't':
        step.tag = value == "*" ? MPI_ANY_TAG : number(value, text);
        break;
      case 'b':
        if (value.ends_with('g')) {
          step.noncontiguous = true;
          value.remove_suffix(1);
        }
        step.bytes = static_cast<std::size_t>(number(value, text));
        break;
      case 'c':
        step.partitions = static_cast<std::size_t>(number(value, text));
        break;
      case 'k':
        step.partition = static_cast<std::size_t>(number(value, text));
        break;
      default:
        step.number = number(value, text);
      }
    }
    return step;
  }
  throw std::invalid_argument(fmt::format("\"{}\": a step is needed: send, ssend, recv, probe, "
                                          "mprobe, mrecv, cancel, withdraw, wait, "
                                          "free, psend, precv, start, ready, mark or end",
                                          text));
}

void parse_condition(std::string_view word, Conditions& to) {
  const auto value = [&] {
    return static_cast<unsigned>(number(word.substr(word.find('=') + 1), word));
  };
  if (word == "read")
    to.rendezvous = base::Rendezvous::read;
  else if (word == "write")
    to.rendezvous = base::Rendezvous::write;
  else if (word == "sender")
    to.protocols = base::Protocols::sender;
  else if (word == "at_once")
    to.transfers = Transfers::at_once;
  else if (word == "blocking")
    to.transfers = Transfers::blocking;
  else if (word == "ordered")
    to.transfers = Transfers::ordered;
  else if (word == "either")
    to.transfers = Transfers::either;
  else if (word == "late")
    to.late = true;
  else if (word == "bursts")
    to.bursts = true;
  else if (word == "notifications")
    to.notifications = true;
  else if (word == "last_byte")
    to.last_byte = true;
  else if (word == "throttle")
    to.throttle = true;
  else if (word == "uncopied")
    to.uncopied = true;
  else if (word == "bundles")
    to.bundles = true;
  else if (word == "copies")
    to.copies = true;
  else if (word == "fragments")
    to.fragments = true;
  else if (word.starts_with("refusals="))
    to.refusals = value();
  else if (word.starts_with("scarce="))
    to.scarce = value();
  else if (word.starts_with("deaths="))
    to.deaths = value();
  else if (word.starts_with("starved="))
    to.starved = value();
  else if (word.starts_with("tags="))
    to.tags = value();
  else
    throw std::invalid_argument(fmt::format(
        "\"{}\": a condition is needed: read, write, sender, "
        "blocking, ordered, either, late, bursts, notifications, last_byte, "
        "throttle, uncopied, bundles, copies, fragments, refusals=N, scarce=N, deaths=N, starved=N "
        "or tags=N",
        word));
}

} // namespace

std::size_t Program::steps() const {
  std::size_t sum = 0;
  for (const auto& rank : ranks)
    sum += rank.size();
  return sum;
}

std::string show(const Step& step) {
  const Name& name = name_of(step.what);
  std::string text = name.text;
  for (const char operand : std::string_view(name.operands)) {
    text += ' ';
    switch (operand) {
    case 'p':
      text += show_or_any(step.peer, MPI_ANY_SOURCE);
      break;
    case 't':
      text += show_or_any(step.tag, MPI_ANY_TAG);
      break;
    case 'b':
      text += std::to_string(step.bytes) + (step.noncontiguous ? "g" : "");
      break;
    case 'c':
      text += std::to_string(step.partitions);
      break;
    case 'k':
      text += std::to_string(step.partition);
      break;
    default:
      text += std::to_string(step.number);
    }
  }
  if (step.context != 0) text += " @" + std::to_string(step.context);
  return text;
}

std::string show(const Program& program) {
  const Conditions& c = program.conditions;
  std::string text = c.rendezvous == base::Rendezvous::read ? "read" : "write";
  if (c.protocols == base::Protocols::sender) text += " sender";
  if (c.transfers == Transfers::blocking) text += " blocking";
  if (c.transfers == Transfers::ordered) text += " ordered";
  if (c.transfers == Transfers::either) text += " either";
  if (c.late) text += " late";
  if (c.bursts) text += " bursts";
  if (c.notifications) text += " notifications";
  if (c.last_byte) text += " last_byte";
  if (c.throttle) text += " throttle";
  if (c.uncopied) text += " uncopied";
  if (c.bundles) text += " bundles";
  if (c.copies) text += " copies";
  if (c.fragments) text += " fragments";
  if (c.refusals != 0) text += fmt::format(" refusals={}", c.refusals);
  if (c.scarce != 0) text += fmt::format(" scarce={}", c.scarce);
  if (c.deaths != 0) text += fmt::format(" deaths={}", c.deaths);
  if (c.starved != 0) text += fmt::format(" starved={}", c.starved);
  if (c.tags != Conditions{}.tags) text += fmt::format(" tags={}", c.tags);
  for (const auto& steps : program.ranks) {
    text += " /";
    for (std::size_t i = 0; i < steps.size(); ++i)
      text += (i == 0 ? " " : ", ") + show(steps[i]);
  }
  return text;
}

Program parse(std::string_view text) {
  const auto sections = split(text, '/');
  if (sections.size() < 3)
    throw std::invalid_argument(fmt::format(
        "\"{}\": needed are conditions and two ranks or more, separated by \"/\"", text));
  Program program;
  for (const std::string_view word : words(sections[0]))
    parse_condition(word, program.conditions);
  const auto ranks = static_cast<int>(sections.size()) - 1;
  for (std::size_t i = 1; i < sections.size(); ++i) {
    std::vector<Step>& steps = program.ranks.emplace_back();
    if (words(sections[i]).empty()) continue;
    for (const std::string_view step : split(sections[i], ',')) {
      if (words(step).empty())
        throw std::invalid_argument(fmt::format("\"{}\": an empty step", sections[i]));
      steps.push_back(parse_step(step));
      if (steps.back().peer >= ranks)
        throw std::invalid_argument(
            fmt::format("\"{}\": rank {} of {}", step, steps.back().peer, ranks));
    }
  }
  return program;
}

} // namespace macadam::prove
