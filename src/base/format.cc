// SPDX-License-Identifier: BSD-3-Clause
// The one translation unit that compiles fmt's own functions. The other files only see their
// declarations, which takes two thirds off the time of a build, and the MPI library still depends
// on no libfmt.so that could meet another version in the application.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>,
                         locale_ref);
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;

} // namespace detail
FMT_END_NAMESPACE
