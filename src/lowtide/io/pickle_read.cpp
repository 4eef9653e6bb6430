// The stack machine of pickles, of which a value is an index into one vector.
#include "lowtide/io/pickle_read.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "lowtide/base/error.h"

namespace lowtide::io {

class PickleReader {
 public:
  explicit PickleReader(Pickle& out) : out_(out), source_(out.source_) {}

  void read() {
    if (!source_.starts_with('\x80'))
      refuse("is no pickle of protocol 2 to 5, which begins with byte 0x80");
    while (true) {
      begin_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') break;
      run(opcode);
    }
    out_.root_ = pop();
    if (!stack_.empty() || !marks_.empty()) refuse("more than one value is left at the end");
  }

 private:
  using Value = Pickle::Value;
  using Dict = Pickle::Dict;
  using Sequence = Pickle::Sequence;

  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("byte {}", begin_), why);
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > source_.size() - at_) refuse("the pickle is cut short");
    const std::string_view taken = source_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  template <class Content>
  void push(Content content) {
    if (out_.values_.size() >= UINT32_MAX) refuse("the pickle has too many values");
    stack_.push_back(static_cast<Value>(out_.values_.size()));
    out_.values_.emplace_back(std::move(content));
  }
  // What lies above the last mark belongs to whoever closes it.
  Value pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value top() {
    const Value value = pop();
    stack_.push_back(value);
    return value;
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  void text(std::uint64_t bytes) {
    const std::size_t begin = at_;
    take(bytes);
    push(Pickle::Text{begin, bytes});
  }
  void other(std::uint64_t bytes) {
    take(bytes);
    push(Pickle::Other{});
  }
  void long_integer(std::uint64_t bytes) {
    if (bytes > 8) return other(bytes);
    const std::uint64_t value = number(bytes);
    const auto unused = static_cast<int>(64 - 8 * bytes);
    push(bytes == 0 ? std::int64_t{0}
                    : static_cast<std::int64_t>(value << unused) >> unused);  // the sign
  }
  void tuple(std::size_t count) {
    std::vector<Value> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push(Sequence{std::move(items)});
  }
  void append(const std::vector<Value>& added) {
    auto* list = std::get_if<Sequence>(&out_.values_[top()]);
    if (list == nullptr) refuse("items are appended to what is no list");
    list->items.insert(list->items.end(), added.begin(), added.end());
  }
  void set_items(const std::vector<Value>& added) {
    auto* dict = std::get_if<Dict>(&out_.values_[top()]);
    if (dict == nullptr || added.size() % 2 != 0) refuse("items are set in what is no dictionary");
    for (std::size_t i = 0; i < added.size(); i += 2)
      dict->items.emplace_back(added[i], added[i + 1]);
  }
  Dict dict_of(const std::vector<Value>& items) {
    if (items.size() % 2 != 0) refuse("a key of a dictionary has no value");
    Dict dict;
    for (std::size_t i = 0; i < items.size(); i += 2)
      dict.items.emplace_back(items[i], items[i + 1]);
    return dict;
  }
  void recall(std::uint64_t place) {
    const auto at = memo_.find(place);
    if (at == memo_.end()) refuse("refers to a value that was not remembered");
    stack_.push_back(at->second);
  }

  void run(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5)
          refuse(fmt::format("protocol {} is not known; must be 2 to 5", protocol));
        break;
      case 0x95: number(8); break;  // FRAME
      case 'N': push(Pickle::Other{}); break;
      case 0x88: push(true); break;
      case 0x89: push(false); break;
      case 'K': push(static_cast<std::int64_t>(number(1))); break;
      case 'M': push(static_cast<std::int64_t>(number(2))); break;
      case 'J':
        push(std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(number(4)))});
        break;
      case 0x8a: long_integer(number(1)); break;  // LONG1
      case 0x8b: long_integer(number(4)); break;  // LONG4
      case 'G': other(8); break;                  // BINFLOAT
      case 0x8c: text(number(1)); break;          // SHORT_BINUNICODE
      case 'X': text(number(4)); break;           // BINUNICODE
      case 0x8d: text(number(8)); break;          // BINUNICODE8
      case 'C': other(number(1)); break;          // SHORT_BINBYTES
      case 'B': other(number(4)); break;          // BINBYTES
      case 0x8e: other(number(8)); break;         // BINBYTES8
      case '(': marks_.push_back(stack_.size()); break;
      case '0': pop(); break;
      case '1': pop_to_mark(); break;
      case ']':
      case ')': push(Sequence{}); break;
      case 'l':
      case 't': push(Sequence{pop_to_mark()}); break;
      case 0x85: tuple(1); break;
      case 0x86: tuple(2); break;
      case 0x87: tuple(3); break;
      case 'a': append({pop()}); break;
      case 'e': append(pop_to_mark()); break;
      case '}': push(Dict{}); break;
      case 'd': push(dict_of(pop_to_mark())); break;
      case 's': {
        const Value value = pop(), key = pop();
        set_items({key, value});
        break;
      }
      case 'u': set_items(pop_to_mark()); break;
      case 'q': memo_[number(1)] = top(); break;  // BINPUT
      case 'r': memo_[number(4)] = top(); break;  // LONG_BINPUT
      case 0x94: {                                // MEMOIZE
        const std::size_t place = memo_.size();
        memo_[place] = top();
        break;
      }
      case 'h': recall(number(1)); break;
      case 'j': recall(number(4)); break;
      default:
        refuse(
            fmt::format("opcode 0x{:02x} is refused: a snapshot is plain data (numbers, text, "
                        "lists, dictionaries), and no code of a pickle is run",
                        opcode));
    }
  }

  Pickle& out_;
  std::string_view source_;
  std::size_t begin_ = 0, at_ = 0;  // the opcode, and what comes next
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Value> memo_;
};

Pickle::Pickle(std::string_view text) : source_(text) {
  PickleReader(*this).read();
  check_nesting();
}

std::string_view Pickle::text(Value value) const {
  const Text* text = get<Text>(value);
  check(text != nullptr, "the value is a text");
  return source_.substr(text->begin, text->size);
}

// Depth first, without recursion: the depth of a value is known when all that it holds are done.
void Pickle::check_nesting() const {
  enum : std::uint8_t { kNew, kOpen, kDone };
  std::vector<std::uint8_t> state(values_.size(), kNew), depth(values_.size(), 0);
  std::vector<Value> stack{root_};
  const auto for_each_held = [&](Value value, auto visit) {
    if (const Sequence* sequence = get<Sequence>(value))
      for (const Value item : sequence->items) visit(item);
    if (const Dict* dict = get<Dict>(value))
      for (const auto& [key, item] : dict->items) visit(key), visit(item);
  };
  while (!stack.empty()) {
    const Value value = stack.back();
    if (state[value] != kNew) {
      stack.pop_back();
      if (state[value] == kDone) continue;
      state[value] = kDone;
      for_each_held(value, [&](Value held) {
        depth[value] =
            std::max<std::uint8_t>(depth[value], static_cast<std::uint8_t>(depth[held] + 1));
      });
      if (depth[value] > kMaxDepth)
        throw InputError("", fmt::format("values are nested deeper than {}", kMaxDepth));
      continue;
    }
    state[value] = kOpen;
    for_each_held(value, [&](Value held) {
      if (state[held] == kOpen) throw InputError("", "a value contains itself");
      if (state[held] == kNew) stack.push_back(held);
    });
  }
}

}  // namespace lowtide::io
