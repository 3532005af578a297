// Random changes of a program's JSON that keep most of its structure.
#pragma once
#include <random>
#include <string>

#include "graph/json.hpp"

namespace fuzz {
using Rng = std::mt19937_64;
inline size_t below(Rng& rng, size_t n) { return n ? size_t(rng() % n) : 0; }

// Changes one to six places of `document`. `other`: a program to take parts from.
void mutate(dovetail::Json& document, const dovetail::Json& other, Rng&);
// Changes bytes of the text.
void mutate_text(std::string& text, Rng&);
// Calls try_with for documents that lack one part each, largest parts first, and keeps those for which it returns
// true, until none does or the budget of tries is spent.
template <class TryWith>
void shrink(dovetail::Json& document, size_t budget, const TryWith& try_with);

std::vector<dovetail::Json*> places(dovetail::Json& document);

template <class TryWith>
void shrink(dovetail::Json& document, size_t budget, const TryWith& try_with) {
  for (bool progress = true; progress && budget;) {
    progress = false;
    for (size_t i = 0; i < places(document).size() && budget; ++i) {
      const size_t n = places(document)[i]->items.size() + places(document)[i]->members.size();
      for (size_t k = 0; k < n && budget; ++k, --budget) {
        dovetail::Json smaller = document;
        dovetail::Json& at = *places(smaller)[i];
        if (k < at.items.size()) at.items.erase(at.items.begin() + std::ptrdiff_t(k));
        else if (k - at.items.size() < at.members.size())
          at.members.erase(at.members.begin() + std::ptrdiff_t(k - at.items.size()));
        else break;
        if (try_with(smaller)) document = std::move(smaller), progress = true;
      }
    }
  }
}
}  // namespace fuzz
