# Debian packages, by `cpack -G DEB` in a build folder (scripts/check-packages does it and looks into them):
#   kedge-client        kedge-client, kedge-train, kedge-relay, a unit, manual pages: what a device needs
#   kedge               kedge, kedge-coordinator, its unit, manual pages and the digits of `kedge poc`
#   libkedge-client1    the library of trainers in other languages
#   libkedge-client-dev its header and what pkg-config knows of it
#   python3-kedge       the Python package over it, for Debian's Python, and as a wheel for virtual environments; examples
#   kedge-train-cuda    the module for CUDA devices, where nvcc was
#   kedge-events        the companion that publishes a coordinator's events, where nng was
#   kedge-doc           the documentation
include(GNUInstallDirs)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
find_program(KEDGE_GZIP gzip)

# kedge_packed(FROM NAME DESTINATION COMPONENT): installs a text as NAME.gz, without a time in it.
function(kedge_packed from name destination component)
  if(KEDGE_GZIP)
    set(packed ${PROJECT_BINARY_DIR}/packages/${component}/${name}.gz)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/packages/${component})
    execute_process(COMMAND ${KEDGE_GZIP} -9nc ${from} OUTPUT_FILE ${packed})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from})
    install(FILES ${packed} DESTINATION ${destination} COMPONENT ${component})
  endif()
endfunction()

# kedge_texts(COMPONENT PACKAGE): what every package has.
function(kedge_texts component package)
  install(FILES ${deploy}/debian/copyright DESTINATION share/doc/${package} COMPONENT ${component})
  kedge_packed(${deploy}/debian/changelog changelog share/doc/${package} ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
endfunction()

# kedge_control(COMPONENT FILE…): control files of a package, from deploy/debian/PACKAGE.FILE.
function(kedge_control component)
  string(TOUPPER ${component} upper)
  foreach(name ${ARGN})
    set(made ${PROJECT_BINARY_DIR}/packages/${component}/${name})
    configure_file(${deploy}/debian/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}.${name} ${made} COPYONLY)
    if(name MATCHES "inst$|rm$")
      file(CHMOD ${made} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
    list(APPEND files ${made})
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${files}" PARENT_SCOPE)
endfunction()

# kedge_package(COMPONENT PACKAGE SERVICE MANUAL…): what a package with a service has beside programs.
function(kedge_package component package service)
  install(FILES ${deploy}/${service}.service DESTINATION lib/systemd/system COMPONENT ${component})
  install(FILES ${deploy}/${service}.sysusers DESTINATION lib/sysusers.d RENAME ${service}.conf COMPONENT ${component})
  kedge_texts(${component} ${package})
  foreach(page ${ARGN})
    string(REGEX REPLACE ".*\\." "" section ${page})
    kedge_packed(${deploy}/man/${page} ${page} share/man/man${section} ${component})
  endforeach()
  foreach(script postinst prerm postrm) # one text each; the name of the service is filled in
    file(READ ${deploy}/debian/${script} text)
    string(REPLACE "@SERVICE@" ${service} text "${text}")
    file(WRITE ${PROJECT_BINARY_DIR}/packages/${component}/${script} "${text}")
    file(CHMOD ${PROJECT_BINARY_DIR}/packages/${component}/${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND scripts ${PROJECT_BINARY_DIR}/packages/${component}/${script})
  endforeach()
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${scripts}" PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL client)
kedge_package(client kedge-client kedge-client kedge-client.8 kedge-relay.8 kedge-train.1)
if(KEDGE_PARTS STREQUAL "all")
  list(APPEND CPACK_COMPONENTS_ALL server)
  kedge_package(server kedge kedge-coordinator kedge-coordinator.8)
  # The manual page of kedge has every command, as the program itself explains them.
  find_package(Python3 COMPONENTS Interpreter)
  set(page ${PROJECT_BINARY_DIR}/packages/server/kedge.1)
  if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING)
    add_custom_command(OUTPUT ${page}.gz
      COMMAND ${Python3_EXECUTABLE} ${deploy}/man/make-man $<TARGET_FILE:kedge> ${deploy}/man/kedge.1 ${page}
      COMMAND ${KEDGE_GZIP} -9nf ${page}
      DEPENDS kedge ${deploy}/man/make-man ${deploy}/man/kedge.1 VERBATIM COMMENT "kedge.1.gz")
    add_custom_target(kedge_man ALL DEPENDS ${page}.gz)
    install(FILES ${page}.gz DESTINATION share/man/man1 COMPONENT server)
  else()
    kedge_packed(${deploy}/man/kedge.1 kedge.1 share/man/man1 server)
  endif()
  list(APPEND CPACK_COMPONENTS_ALL doc)
  kedge_texts(doc kedge-doc)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/SECURITY.md DESTINATION share/doc/kedge-doc COMPONENT doc)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION share/doc/kedge-doc COMPONENT doc FILES_MATCHING PATTERN "*.md"
    PATTERN "experiments" EXCLUDE)
endif()
if(TARGET kedge_client_shared)
  list(APPEND CPACK_COMPONENTS_ALL lib dev)
  kedge_texts(lib libkedge-client1)
  kedge_control(lib shlibs triggers)
  kedge_texts(dev libkedge-client-dev)
endif()
if(TARGET kedge_client_shared AND Python3_FOUND)
  # The wheel, and the same unpacked where Debian's Python looks.
  list(APPEND CPACK_COMPONENTS_ALL python)
  kedge_texts(python python3-kedge)
  kedge_control(python postinst prerm)
  set(python ${PROJECT_SOURCE_DIR}/python)
  set(wheel ${PROJECT_BINARY_DIR}/packages/python/kedge-${PROJECT_VERSION}-py3-none-any.whl)
  file(GLOB modules CONFIGURE_DEPENDS ${python}/kedge/*.py)
  add_custom_command(OUTPUT ${wheel}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/packages/python/unpacked
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/packages/python/unpacked
    COMMAND ${CMAKE_COMMAND} -E env --unset=KEDGE_LIBRARY PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} -c
            "import sys, build_wheel; build_wheel.build_wheel(sys.argv[1])" ${PROJECT_BINARY_DIR}/packages/python
    COMMAND ${CMAKE_COMMAND} -E chdir ${PROJECT_BINARY_DIR}/packages/python/unpacked ${CMAKE_COMMAND} -E tar xf ${wheel}
    WORKING_DIRECTORY ${python} # where build_wheel is found
    DEPENDS ${python}/build_wheel.py ${python}/pyproject.toml ${modules} VERBATIM COMMENT "the wheel of python/")
  add_custom_target(kedge_wheel ALL DEPENDS ${wheel})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/packages/python/unpacked/ DESTINATION lib/python3/dist-packages COMPONENT python)
  install(FILES ${wheel} DESTINATION share/python3-kedge COMPONENT python)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/numpy ${PROJECT_SOURCE_DIR}/examples/pytorch
    DESTINATION share/doc/python3-kedge/examples COMPONENT python)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/digits.py DESTINATION share/doc/python3-kedge/examples COMPONENT python)
endif()
if(TARGET kedge-events)
  list(APPEND CPACK_COMPONENTS_ALL events)
  kedge_texts(events kedge-events)
  kedge_packed(${deploy}/man/kedge-events.8 kedge-events.8 share/man/man8 events)
endif()
if(TARGET kedge_train_cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  kedge_texts(cuda kedge-train-cuda)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kedge)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Kedge maintainers <maintainers@kedge.dev>")
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "https://kedge.dev")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION net)
set(CPACK_DEBIAN_EVENTS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "federated learning on a device's own data
kedge-client is the daemon of one site of a federation: it trains on data that
never leave the device, for the jobs that its owner allows, and keeps proof of
what it sent. kedge-train is the built-in trainer, on the processor.")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "federated learning with a record that a stranger can check
kedge-coordinator is the server of a federation; kedge is the command line of
its operator, its organisations and their auditors.")
set(CPACK_COMPONENT_LIB_DESCRIPTION "library for trainers of Kedge in other languages
libkedge-client speaks the contract between kedge-client and a trainer:
requests, replies, and weights as arrays, with a plain C interface.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "library for trainers of Kedge in other languages (development)
The header of libkedge-client and what pkg-config knows of it.")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "trainers of Kedge in Python
A NumPyClient over libkedge-client, for Debian's Python and as a wheel for
virtual environments, with two examples.")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "trainer of Kedge on CUDA devices
The module that kedge-train opens when it is told to train on a CUDA device.")
set(CPACK_COMPONENT_EVENTS_DESCRIPTION "federated learning with a record that a stranger can check (event stream)
kedge-events publishes what happens at a coordinator to subscribers on the same
machine, by nng's PUB/SUB. kedge-coordinator starts it where it is installed.")
set(CPACK_COMPONENT_DOC_DESCRIPTION "federated learning with a record that a stranger can check (documentation)
How Kedge is operated, what its files and records are, and how it is built.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libkedge-client1 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), libkedge-client1 (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch, python3-venv")
set(CPACK_DEBIAN_EVENTS_PACKAGE_DEPENDS "kedge (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "kedge-client (= ${PROJECT_VERSION})")
if(CMAKE_CROSSCOMPILING) # dpkg-shlibdeps asks the machine's own packages: what the libraries are called, said by hand
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS
    "libc6 (>= 2.36), libjansson4 (>= 2.14), libopenblas0, libsodium23 (>= 1.0.18), libssl3 (>= 3.0.0), zlib1g")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "kedge-client (= ${PROJECT_VERSION})")
endif()
include(CPack)
