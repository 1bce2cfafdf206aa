# SPDX-License-Identifier: BSD-3-Clause
# Generates mpi.h, mpi/calls.h, the entry points, MPI in Fortran and in MPICH's ABI from the table. Included before
# all layers, since all of them include mpi.h. Sets MACADAM_ENTRY_POINTS, the generated sources,
# MACADAM_SIMULATED_CALLS, what simulated programs call in their place, and
# MACADAM_FORTRAN_GLUE and MACADAM_FORTRAN_MODULES, those of src/fortran, and
# MACADAM_MPICH_ENTRY_POINTS and MACADAM_MPICH_FORTRAN_GLUE, those of src/mpich.

set(api ${PROJECT_SOURCE_DIR}/src/api)
file(GLOB api_inputs CONFIGURE_DEPENDS ${api}/table/*.table ${api}/generator/*.py
     ${api}/generator/fortran/*.py)
set(MACADAM_ENTRY_POINTS ${PROJECT_BINARY_DIR}/generated/api/tool.cc)
set(MACADAM_SIMULATED_CALLS ${PROJECT_BINARY_DIR}/generated/sim/calls.cc)
set(MACADAM_MPICH_ENTRY_POINTS ${PROJECT_BINARY_DIR}/generated/mpich/tool.cc)
set(MACADAM_MPICH_FORTRAN_GLUE "")
set(MACADAM_FORTRAN_GLUE "")
set(MACADAM_FORTRAN_MODULES "")
foreach(file point_to_point collective one_sided datatype communicator environment file)
  list(APPEND MACADAM_ENTRY_POINTS ${PROJECT_BINARY_DIR}/generated/api/${file}.cc)
  list(APPEND MACADAM_MPICH_ENTRY_POINTS ${PROJECT_BINARY_DIR}/generated/mpich/${file}.cc)
  list(APPEND MACADAM_MPICH_FORTRAN_GLUE ${PROJECT_BINARY_DIR}/generated/mpich/fortran/${file}.cc)
  list(APPEND MACADAM_FORTRAN_GLUE ${PROJECT_BINARY_DIR}/generated/fortran/${file}.cc)
  list(APPEND MACADAM_FORTRAN_MODULES mpi_f90_${file} mpi_f08_${file})
endforeach()
list(APPEND MACADAM_FORTRAN_MODULES mpi_numbers mpi_constants mpi_extras mpi mpi_f08_types
            mpi_f08_callbacks mpi_f08_constants mpi_f08_extras mpi_f08)
list(TRANSFORM MACADAM_FORTRAN_MODULES PREPEND ${PROJECT_BINARY_DIR}/generated/fortran/)
list(TRANSFORM MACADAM_FORTRAN_MODULES APPEND .f90)

add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/include/mpi.h ${PROJECT_BINARY_DIR}/generated/mpi/calls.h
         ${PROJECT_BINARY_DIR}/generated/api.json ${MACADAM_ENTRY_POINTS}
         ${MACADAM_SIMULATED_CALLS} ${PROJECT_BINARY_DIR}/include/mpif.h ${MACADAM_FORTRAN_GLUE} ${MACADAM_FORTRAN_MODULES}
         ${MACADAM_MPICH_ENTRY_POINTS} ${PROJECT_BINARY_DIR}/generated/mpich/constants.h
         ${PROJECT_BINARY_DIR}/generated/mpich/standard.h ${MACADAM_MPICH_FORTRAN_GLUE}
         ${PROJECT_BINARY_DIR}/generated/mpich/fortran/functions.h
  COMMAND ${Python3_EXECUTABLE} -B ${api}/generate.py --out ${PROJECT_BINARY_DIR}
  DEPENDS ${api}/generate.py ${api_inputs}
  COMMENT "Generating mpi.h and all else that follows from the table of MPI"
  VERBATIM)
add_custom_target(macadam_mpi_header
  DEPENDS ${PROJECT_BINARY_DIR}/include/mpi.h ${PROJECT_BINARY_DIR}/generated/mpi/calls.h)

install(FILES ${PROJECT_BINARY_DIR}/include/mpi.h TYPE INCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/api.json TYPE DATA RENAME macadam/api.json)
