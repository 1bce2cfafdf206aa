// SPDX-License-Identifier: BSD-3-Clause
#include "engine/word_wait.h"

#include "engine/engine.h"

namespace macadam::engine {

bool Engine::wait_for(WordWait& wait) noexcept {
  if (failure_.noted()) [[unlikely]]
    return false;
  word_waits_.push_back(wait);
  return true;
}

// The end of one may begin others, which stand behind all that there are.
bool Engine::look_at_words() noexcept {
  bool moved = false;
  for (auto at = word_waits_.begin(); at != word_waits_.end();) {
    WordWait& wait = *at;
    ++at;
    const bool reached = wait.reached();
    if (!reached && !(any_failed_ && never_comes(wait))) continue;
    base::List<WordWait>::erase(wait);
    moved = true;
    wait.call(wait, reached);
  }
  return moved;
}

void Engine::end_word_waits() noexcept {
  while (!word_waits_.empty()) {
    WordWait& wait = word_waits_.pop_front();
    wait.call(wait, wait.reached());
  }
}

// A writer whose own collective has failed, and that goes on, is not seen here: it is waited for
// until this process hears of the same failure.
bool Engine::never_comes(const WordWait& wait) const noexcept {
  for (int rank = 0; rank < wait.group->size(); ++rank) {
    const Rank process = (*wait.group)[rank];
    const Peer* const peer = peers_.find(process);
    if (peer == nullptr || peer->state != PeerState::failed) continue;
    if (process == wait.writer || !peer->transport->has_left(*peer->link)) return true;
  }
  return false;
}

} // namespace macadam::engine
