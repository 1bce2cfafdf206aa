# SPDX-License-Identifier: BSD-3-Clause
# Whether MPI in Fortran is built: sets MACADAM_HAS_FORTRAN. Included at the top, since a language is
# known only below the folder that enables it.
include(CheckLanguage)
set(MACADAM_FORTRAN auto CACHE STRING "MPI in Fortran: on, off, or auto: if there is a compiler")
set(MACADAM_FORTRAN_MANGLING underscore CACHE STRING
    "Names that the Fortran compiler gives to procedures: underscore (mpi_send_), lower or upper")
set_property(CACHE MACADAM_FORTRAN PROPERTY STRINGS auto on off)
set_property(CACHE MACADAM_FORTRAN_MANGLING PROPERTY STRINGS underscore lower upper)
if(NOT MACADAM_FORTRAN_MANGLING MATCHES "^(underscore|lower|upper)$")
  message(FATAL_ERROR "MACADAM_FORTRAN_MANGLING is ${MACADAM_FORTRAN_MANGLING}; it must be "
                      "underscore, lower or upper")
endif()

set(MACADAM_HAS_FORTRAN OFF)
# A program of the Fortran compiler cannot load a sanitized library.
if(NOT MACADAM_FORTRAN STREQUAL off AND NOT MACADAM_SANITIZE)
  check_language(Fortran)
  if(CMAKE_Fortran_COMPILER)
    enable_language(Fortran)
    set(MACADAM_HAS_FORTRAN ON)
  elseif(MACADAM_FORTRAN STREQUAL auto)
    message(STATUS "MPI in Fortran is left out: there is no Fortran compiler")
  else()
    message(FATAL_ERROR "MACADAM_FORTRAN is ${MACADAM_FORTRAN}, but there is no Fortran compiler. "
                        "On Debian and Ubuntu: apt-get install gfortran")
  endif()
endif()
