// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace macadam::base {

// A link of an intrusive list. An object that stands in several lists at once derives from
// ListNode<Tag> once per list. Unlinked nodes point to themselves, so erase() is always safe.
template <class Tag = void>
struct ListNode {
  ListNode* prev = this;
  ListNode* next = this;

  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;

  [[nodiscard]] bool linked() const { return next != this; }
  void unlink() {
    prev->next = next;
    next->prev = prev;
    prev = next = this;
  }
};

// A doubly linked list of objects it does not own.
template <class T, class Tag = void>
class List {
 public:
  using Node = ListNode<Tag>;

  class Iterator {
   public:
    explicit Iterator(Node* node) : node_(node) {}
    T& operator*() const { return static_cast<T&>(*node_); }
    T* operator->() const { return &static_cast<T&>(*node_); }
    Iterator& operator++() {
      node_ = node_->next;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Node* node_;
  };

  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty())
      head_.next->unlink();
  }

  [[nodiscard]] bool empty() const { return head_.next == &head_; }
  [[nodiscard]] T& front() const { return static_cast<T&>(*head_.next); }
  [[nodiscard]] Iterator begin() const { return Iterator(head_.next); }
  [[nodiscard]] Iterator end() const { return Iterator(const_cast<Node*>(&head_)); }

  void push_back(T& object) {
    Node& node = object;
    node.prev = head_.prev;
    node.next = &head_;
    head_.prev->next = &node;
    head_.prev = &node;
  }
  void push_front(T& object) {
    Node& node = object;
    node.prev = &head_;
    node.next = head_.next;
    head_.next->prev = &node;
    head_.next = &node;
  }
  T& pop_front() {
    T& object = front();
    static_cast<Node&>(object).unlink();
    return object;
  }
  static void erase(T& object) { static_cast<Node&>(object).unlink(); }
  // The same, for objects that seldom stand in the list: writes nothing then.
  static void erase_if_linked(T& object) {
    if (static_cast<Node&>(object).linked()) [[unlikely]]
      erase(object);
  }

 private:
  Node head_;
};

} // namespace macadam::base
