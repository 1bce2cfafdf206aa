// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <gtest/gtest.h>

#include <string>

// Expects that `action` throws an Error of this class whose text contains `part`.
template <class Action>
void expect_error(int error_class, const std::string& part, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error, expected one with \"" << part << '"';
  } catch (const macadam::base::Error& error) {
    EXPECT_EQ(error.error_class, error_class) << error.text;
    EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
  }
}
