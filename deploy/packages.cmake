# Debian packages, by `cpack -G DEB` in a build folder (scripts/check-packages does it and looks into them):
#   kedge-client   kedge-client, kedge-train, their unit and manual pages: what a device needs
#   kedge          kedge, kedge-coordinator, its unit, manual pages and the digits of `kedge poc`
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

# kedge_package(COMPONENT PACKAGE SERVICE MANUAL…): what a package has beside programs.
function(kedge_package component package service)
  install(FILES ${deploy}/${service}.service DESTINATION lib/systemd/system COMPONENT ${component})
  install(FILES ${deploy}/${service}.sysusers DESTINATION lib/sysusers.d RENAME ${service}.conf COMPONENT ${component})
  install(FILES ${deploy}/debian/copyright DESTINATION share/doc/${package} COMPONENT ${component})
  kedge_packed(${deploy}/debian/changelog changelog share/doc/${package} ${component})
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
  kedge_package(server kedge kedge-coordinator kedge.1 kedge-coordinator.8)
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
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "federated learning on a device's own data
kedge-client is the daemon of one site of a federation: it trains on data that
never leave the device, for the jobs that its owner allows, and keeps proof of
what it sent. kedge-train is the built-in trainer, on the processor.")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "federated learning with a record that a stranger can check
kedge-coordinator is the server of a federation; kedge is the command line of
its operator, its organisations and their auditors.")
if(CMAKE_CROSSCOMPILING) # dpkg-shlibdeps asks the machine's own packages: what the libraries are called, said by hand
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS
    "libc6 (>= 2.36), libjansson4 (>= 2.14), libopenblas0, libsodium23 (>= 1.0.18), libssl3 (>= 3.0.0), zlib1g")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "kedge-client (= ${PROJECT_VERSION})")
endif()
include(CPack)
