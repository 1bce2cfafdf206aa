# SPDX-License-Identifier: BSD-3-Clause
# What every folder's CMakeLists.txt uses: flags, layers, unit tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Lines for backtraces and profiles; whole debug information is in the debug preset.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  # Of the macros that precompiled headers leave behind, ours do not depend on the date.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)  # its headers; src/base/format.cc compiles the rest

# Flags shared by all targets of ours. Third-party headers come in as SYSTEM.
add_library(macadam_flags INTERFACE)
target_include_directories(macadam_flags INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                   ${PROJECT_BINARY_DIR}/include
                                                   ${PROJECT_BINARY_DIR}/generated)
target_compile_options(macadam_flags INTERFACE -Wall -Wextra -Wpedantic -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wnon-virtual-dtor -Woverloaded-virtual>)
if(NOT MACADAM_SANITIZE)  # which compile files together: constants of one are no concern of another
  target_compile_options(macadam_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
endif()
# GCC clears and copies structures of more than 128 bytes by a string instruction, which takes longer
# to begin than the stores it stands for: a tenth of a short allreduce.
include(CheckCXXCompilerFlag)
set(unrolled unrolled_loop:512:noalign,libcall:-1:noalign)
check_cxx_compiler_flag("-mmemset-strategy=${unrolled} -mmemcpy-strategy=${unrolled}"
                        MACADAM_COMPILER_UNROLLS_COPIES)
if(MACADAM_COMPILER_UNROLLS_COPIES)
  target_compile_options(macadam_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-mmemset-strategy=${unrolled};-mmemcpy-strategy=${unrolled}>)
endif()
# Without optimisation GCC 12 finds no match for the operator new of a coroutine's frame, which has
# more parameters than its operator delete.
target_compile_options(macadam_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>>:-Wno-mismatched-new-delete>)
if(MACADAM_SANITIZE)
  target_compile_options(macadam_flags INTERFACE -fsanitize=${MACADAM_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(macadam_flags INTERFACE -fsanitize=${MACADAM_SANITIZE})
endif()
# Tests under sanitizers: -O1 takes up to twice as long to compile; -O0 as long as this, and the units of collectives
# then run 1.6 times as long.
add_library(macadam_test_flags INTERFACE)
target_link_libraries(macadam_test_flags INTERFACE macadam_flags)
if(MACADAM_SANITIZE)
  target_compile_options(macadam_test_flags INTERFACE -Og)
endif()

# The standard library's headers are compiled once, and with GoogleTest's once more for the tests.
# All targets share the flags above, which GCC demands of them.
option(MACADAM_PRECOMPILE "Precompile the headers of the system" ON)
if(MACADAM_PRECOMPILE AND CCACHE)
  target_compile_options(macadam_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
set(precompiled_of_layers ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
set(precompiled_of_tests ${precompiled_of_layers} <gtest/gtest.h>)
# macadam_precompile(TARGET layers|tests)
function(macadam_precompile target whose)
  if(NOT MACADAM_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET precompiled_${whose})
    file(WRITE ${PROJECT_BINARY_DIR}/precompiled_${whose}.cc "")
    add_library(precompiled_${whose} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${whose}.cc)
    target_link_libraries(precompiled_${whose} PRIVATE macadam_flags)
    target_precompile_headers(precompiled_${whose} PRIVATE ${precompiled_of_${whose}})
    if(whose STREQUAL tests) # as programs are compiled
      set_target_properties(precompiled_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(precompiled_tests PRIVATE -fPIE)
      target_link_libraries(precompiled_tests PRIVATE macadam_test_flags GTest::gtest)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM precompiled_${whose})
endfunction()

# macadam_layer(NAME SOURCES file... [USES layer...] [LIBRARIES target...])
# A layer is a static library `macadam_NAME`; USES names the layers below it. The include order
# itself is checked by cmake/check_layers.py, a part of every build.
function(macadam_layer name)
  cmake_parse_arguments(L "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(macadam_${name} STATIC ${L_SOURCES})
  target_link_libraries(macadam_${name} PUBLIC macadam_flags Threads::Threads
                                               ${L_LIBRARIES})
  foreach(layer ${L_USES})
    target_link_libraries(macadam_${name} PUBLIC macadam_${layer})
  endforeach()
  macadam_precompile(macadam_${name} layers)
  # For sanitizers several files of the library are compiled as one, in half the time: names of a
  # file are those of its layer alone. Frames of coroutines hold lambdas whose types, GCC thinks,
  # others could mean then.
  if(MACADAM_SANITIZE AND CMAKE_CURRENT_SOURCE_DIR MATCHES "/src/" AND NOT name STREQUAL "tools")
    set_target_properties(macadam_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    target_compile_options(macadam_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  if(TARGET macadam_mpi_header)
    add_dependencies(macadam_${name} macadam_mpi_header)
  endif()
endfunction()

# macadam_labelled(TARGET label...): TARGET is built by the targets `tests_LABEL`, which build what
# `ctest -L LABEL` runs and nothing else.
function(macadam_labelled target)
  foreach(label ${ARGN})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()

# Time limits are there for tests that hang, so a sanitizer's are longer, like its runs.
set(macadam_limit_factor 1)
if(MACADAM_SANITIZE)
  set(macadam_limit_factor 3)
endif()

# macadam_unit_test(NAME SOURCES file... USES layer... [TIMEOUT seconds] [LABELS label...])
# A GoogleTest program registered with CTest under the label `unit`, or those given: `threads` (run
# under the thread sanitizer), `exhaustive` (too long for sanitizers).
function(macadam_unit_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;USES;LABELS" ${ARGN})
  if(NOT MACADAM_TESTS)
    return()
  endif()
  if(NOT T_SOURCES)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  math(EXPR T_TIMEOUT "${T_TIMEOUT} * ${macadam_limit_factor}")
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE macadam_test_flags GTest::gtest_main)
  foreach(layer ${T_USES})
    target_link_libraries(${name} PRIVATE macadam_${layer})
  endforeach()
  macadam_precompile(${name} tests)
  macadam_labelled(${name} ${T_LABELS})
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    # Tests ask for more memory than there is, to see it refused.
    ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
endfunction()

add_custom_target(check_layers ALL
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/check_layers.py ${PROJECT_SOURCE_DIR}
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/check_copies.py ${PROJECT_SOURCE_DIR}
  COMMENT "Checking the include order of the layers, and their copies")
