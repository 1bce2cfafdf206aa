// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/links.h"

#include "tools/mpiexec/allocation.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace macadam::tools {

using namespace std::chrono_literals;
using boot::PacketReader;
using boot::PacketWriter;

namespace {

constexpr auto time_to_start = 30s; // until the other side answers
constexpr auto time_to_rest = 1s;   // before a link ends that nobody needs
constexpr auto time_to_write = 300ms;

// It goes on a command line, and comes from whoever has given the name of a port.
bool is_host(std::string_view name) {
  constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of(letters) == std::string_view::npos;
}

// The batch system's way to a machine of the job that it has given us, or ssh.
RemoteShell shell_to(const std::string& host) {
  const Allocation allocation = find_allocation();
  const bool is_given =
      std::ranges::any_of(allocation.hosts, [&](const Host& each) { return each.name == host; });
  return choose_shell(is_given ? allocation.starter : std::vector<std::string>());
}

} // namespace

Links::Links(ControlServer& server, Own own, OnChange on_change)
    : server_(server), own_(std::move(own)), mpiexec_(boot::read_part(server.name()).mpiexec),
      on_change_(std::move(on_change)) {}

Links::~Links() {
  const auto until = Clock::now() + time_to_write;
  for (const auto& link : links_) {
    link->stream().write_some();
    if (link->shell && link->stage != Stage::greeting)
      link->shell->finish(std::max(until, Clock::now()));
  }
}

Links::Link* Links::find(const std::string& mpiexec) {
  const auto found = std::ranges::find_if(links_, [&](const auto& link) {
    return link->mpiexec == mpiexec && link->stage < Stage::leaving;
  });
  return found == links_.end() ? nullptr : found->get();
}

void Links::Link::say(FrameKind kind, const PacketWriter& body) {
  stream().send(kind, body);
  stream().write_some();
}

// Throws std::runtime_error.
Links::Link& Links::make(const Place& place) {
  const bool is_here = place.host == own_.host;
  if (!is_here && !is_host(place.host))
    throw std::runtime_error(fmt::format("\"{}\" is no name of a host", place.host));
  auto link = std::make_unique<Link>(own_.silence_seconds);
  link->place = place;
  link->mpiexec = boot::read_part(place.socket).mpiexec;
  link->shell = std::make_unique<Connection>(
      place.host, Connection::Task{link_word, is_here, place.socket + "\n", "mpiexec"},
      is_here ? RemoteShell() : shell_to(place.host), own_.signal_mask);
  return open(std::move(link));
}

void Links::add(int stream) {
  auto link = std::make_unique<Link>(own_.silence_seconds);
  link->accepted = std::make_unique<FrameStream>(stream, fcntl(stream, F_DUPFD_CLOEXEC, 3));
  open(std::move(link));
}

Links::Link& Links::open(std::unique_ptr<Link> link) {
  link->number = ++last_number_;
  link->since = Clock::now();
  if (links_.empty()) beat_ = Clock::now() + Silence::interval;
  links_.push_back(std::move(link));
  PacketWriter hello;
  hello.text(mpiexec_);
  hello.text(own_.host);
  hello.text(server_.name());
  links_.back()->say(FrameKind::hello, hello);
  return *links_.back();
}

std::uint64_t Links::ask(const Place& place, std::string request, OnPacket on_answer) {
  const std::uint64_t id = ++last_asked_;
  Asked& asked = asked_[id] = {nullptr, place, std::move(request), std::move(on_answer)};
  try {
    asked.link = find(boot::read_part(place.socket).mpiexec);
    if (asked.link == nullptr) asked.link = &make(place);
    send(*asked.link, id, asked.request);
  } catch (const std::exception& error) {
    refused_.emplace_back(std::move(asked.on_answer), error.what());
    asked_.erase(id);
  }
  return id;
}

// After the question whether the link may end nothing is asked until it has been answered.
void Links::send(Link& link, std::uint64_t id, const std::string& request) {
  if (link.stage == Stage::asked) return;
  PacketWriter body;
  body.value(id);
  body.text(request);
  link.say(FrameKind::request, body);
}

void Links::call_off(std::uint64_t id) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;
  Link* const link = found->second.link;
  asked_.erase(found);
  if (link == nullptr || link->stage == Stage::asked) return;
  PacketWriter body;
  body.value(id);
  link->say(FrameKind::called_off, body);
}

void Links::answer(const ControlServer::Origin& origin, const std::vector<std::byte>& packet) {
  const auto found = std::ranges::find_if(
      links_, [&](const auto& link) { return link->machine() == origin.machine; });
  if (found == links_.end()) return;
  (*found)->serves.erase(origin.id);
  PacketWriter body;
  body.value(origin.id);
  body.text({reinterpret_cast<const char*>(packet.data()), packet.size()});
  (*found)->say(FrameKind::answer, body);
}

void Links::list(std::vector<pollfd>& polled) {
  listed_.clear();
  const std::size_t first = polled.size();
  for (const auto& link : links_) {
    listed_.emplace_back(link.get(), polled.size() - first);
    link->stream().list(polled);
  }
}

void Links::take(const pollfd* first) {
  for (const auto& [link, at] : listed_) {
    if (link->stage == Stage::gone) continue;
    link->stream().write_some();
    if (first[at].revents != 0) take(*link);
  }
  listed_.clear();
  for (const auto& [refuse, why] : std::exchange(refused_, {}))
    refuse(refusal(why));
  on_beat();
  sweep();
}

void Links::take(Link& link) {
  const bool goes_on = link.stream().read_some();
  try {
    while (link.stage != Stage::gone) {
      std::optional<Frame> frame = link.stream().next();
      if (!frame) break;
      link.silence.end();
      on_frame(link, std::move(*frame));
    }
  } catch (const Misunderstood& error) {
    return lose(link, fmt::format("mpiexec on host {} {}", link.place.host, error.what()));
  } catch (const base::Error& error) {
    return lose(link, fmt::format("what mpiexec on host {} says ends too early: {}",
                                  link.place.host, error.text));
  }
  if (!goes_on && link.stage != Stage::gone) lose(link, explain(link));
}

std::string Links::explain(Link& link) {
  if (link.shell) return link.shell->explain_loss(link.stage != Stage::greeting);
  return fmt::format("the connection with the mpiexec on host {} has ended", link.place.host);
}

void Links::on_frame(Link& link, Frame frame) {
  PacketReader& body = frame.body;
  switch (frame.kind) {
  case FrameKind::beat:
    break;
  case FrameKind::hello:
    return on_hello(link, body);
  case FrameKind::refused:
    return lose(link, body.text());
  case FrameKind::request:
    return on_request(link, body);
  case FrameKind::answer:
    return on_answer(body);
  case FrameKind::called_off: {
    const auto id = body.value<std::uint64_t>();
    link.serves.erase(id);
    return server_.call_off({link.machine(), id});
  }
  case FrameKind::signal:
    link.stopped = body.value<std::int32_t>() == SIGTSTP;
    break;
  case FrameKind::done:
    return on_wish_to_end(link);
  case FrameKind::bye:
    return on_bye(link);
  default:
    throw Misunderstood("says what is not its to say");
  }
}

void Links::on_hello(Link& link, PacketReader& body) {
  link.mpiexec = body.text();
  link.place.host = body.text();
  link.place.socket = body.text();
  if (link.stage != Stage::greeting) return;
  link.stage = Stage::open;
  link.since = Clock::now();
  on_change_(link.mpiexec, true);
}

// What was held back goes now: the link does not end.
void Links::on_request(Link& link, PacketReader& body) {
  const auto id = body.value<std::uint64_t>();
  if (link.stage == Stage::asked) {
    link.stage = Stage::open;
    for (const auto& [own, asked] : asked_)
      if (asked.link == &link) send(link, own, asked.request);
  }
  link.serves.insert(id);
  server_.receive({link.machine(), id}, boot::as_bytes(body.text()));
}

void Links::on_answer(PacketReader& body) {
  const auto found = asked_.find(body.value<std::uint64_t>());
  if (found == asked_.end()) return; // it was called off
  const OnPacket on_answer = std::move(found->second.on_answer);
  asked_.erase(found);
  on_answer(boot::as_bytes(body.text()));
}

bool Links::is_idle(const Link& link) const {
  return link.serves.empty() &&
         std::ranges::none_of(asked_, [&](const auto& each) { return each.second.link == &link; });
}

// If not, what is under way from here keeps it.
void Links::on_wish_to_end(Link& link) {
  if (!is_idle(link)) return;
  link.stage = Stage::leaving;
  on_change_(link.mpiexec, false);
  link.say(FrameKind::bye);
}

void Links::on_bye(Link& link) {
  link.stage = Stage::gone;
  on_change_(link.mpiexec, false);
  std::map<std::uint64_t, Asked> again;
  for (auto at = asked_.begin(); at != asked_.end();)
    if (auto here = at++; here->second.link == &link) again.insert(asked_.extract(here));
  for (auto& [id, asked] : again) {
    try {
      asked.link = find(boot::read_part(asked.place.socket).mpiexec);
      if (asked.link == nullptr) asked.link = &make(asked.place);
      send(*asked.link, id, asked.request);
      asked_.emplace(id, std::move(asked));
    } catch (const std::exception& error) {
      refused_.emplace_back(std::move(asked.on_answer), error.what());
    }
  }
}

std::optional<Links::Clock::time_point> Links::due() const {
  if (!refused_.empty()) return Clock::now();
  return links_.empty() ? std::nullopt : std::optional(beat_);
}

void Links::on_beat() {
  if (links_.empty() || Clock::now() < beat_) return;
  beat_ = Clock::now() + Silence::interval;
  std::vector<Link*> links;
  for (const auto& link : links_)
    links.push_back(link.get());
  for (Link* const link : links)
    beat(*link);
}

// One that is only silent may have a busy machine, which these beats do not tell, and what its jobs
// have with ours goes another way.
void Links::beat(Link& link) {
  const auto now = Clock::now();
  if (!is_idle(link) && link.stage != Stage::greeting) link.since = now;
  switch (link.stage) {
  case Stage::greeting:
    if (link.shell && is_idle(link)) return lose(link, "nobody waits for it any more");
    if (now - link.since < time_to_start) return;
    return lose(link, fmt::format("host {} has not answered within {} s", link.place.host,
                                  std::chrono::seconds(time_to_start).count()));
  case Stage::open:
    if (!link.shell || now - link.since < time_to_rest) break;
    link.stage = Stage::asked;
    link.stream().send(FrameKind::done);
    break;
  case Stage::leaving:
    if (now - link.since > 2 * time_to_rest) lose(link, "");
    return;
  case Stage::asked:
    break;
  case Stage::gone:
    return;
  }
  link.say(FrameKind::beat);
  if (!link.stopped && link.silence.count(true))
    lose(link, fmt::format("the mpiexec on host {} has said nothing for {} s", link.place.host,
                           link.silence.allowed_seconds()));
}

void Links::lose(Link& link, const std::string& why) {
  if (link.stage == Stage::gone) return;
  const bool was_linked = link.stage != Stage::leaving && !link.mpiexec.empty();
  link.stage = Stage::gone;
  if (was_linked) on_change_(link.mpiexec, false);
  if (was_linked) last_loss_ = why;
  server_.call_off_all(link.machine());
  std::vector<OnPacket> lost;
  for (auto at = asked_.begin(); at != asked_.end();)
    if (auto here = at++; here->second.link == &link)
      lost.push_back(std::move(asked_.extract(here).mapped().on_answer));
  for (const OnPacket& on_answer : lost)
    on_answer(refusal(why));
}

void Links::sweep() {
  std::erase_if(links_, [](const auto& link) { return link->stage == Stage::gone; });
}

bool Links::note_end(pid_t pid, int status) {
  for (const auto& link : links_) {
    if (!link->shell || link->shell->process() != pid) continue;
    link->shell->note_end(status);
    return true;
  }
  return false;
}

void Links::tell_signal(int number) {
  PacketWriter body;
  body.value(std::int32_t{number});
  for (const auto& link : links_)
    link->say(FrameKind::signal, body);
}

} // namespace macadam::tools
