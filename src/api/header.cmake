# SPDX-License-Identifier: BSD-3-Clause
# Generates mpi.h, mpi/calls.h and the entry points from the table. Included before all layers, since
# all of them include mpi.h. Sets MACADAM_ENTRY_POINTS, the generated sources.

set(api ${PROJECT_SOURCE_DIR}/src/api)
file(GLOB api_inputs CONFIGURE_DEPENDS ${api}/table/*.table ${api}/generator/*.py)
set(MACADAM_ENTRY_POINTS "")
foreach(file point_to_point collective one_sided datatype communicator environment file tool)
  list(APPEND MACADAM_ENTRY_POINTS ${PROJECT_BINARY_DIR}/generated/api/${file}.cc)
endforeach()

add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/include/mpi.h ${PROJECT_BINARY_DIR}/generated/mpi/calls.h
         ${PROJECT_BINARY_DIR}/generated/api.json ${MACADAM_ENTRY_POINTS}
  COMMAND ${Python3_EXECUTABLE} -B ${api}/generate.py --out ${PROJECT_BINARY_DIR}
  DEPENDS ${api}/generate.py ${api_inputs}
  COMMENT "Generating mpi.h and the entry points from the table of MPI"
  VERBATIM)
add_custom_target(macadam_mpi_header
  DEPENDS ${PROJECT_BINARY_DIR}/include/mpi.h ${PROJECT_BINARY_DIR}/generated/mpi/calls.h)

install(FILES ${PROJECT_BINARY_DIR}/include/mpi.h TYPE INCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/api.json TYPE DATA RENAME macadam/api.json)
