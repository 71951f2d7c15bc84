# Toolchain: Debian's gcc-aarch64-linux-gnu against the sysroot that scripts/cross-arm64 lays out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(KEDGE_SYSROOT "" CACHE PATH "unpacked arm64 packages of Debian")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KEDGE_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${KEDGE_SYSROOT}/usr /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Debian's .pc files name /usr: pkg-config puts the sysroot before it.
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${KEDGE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} "${KEDGE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${KEDGE_SYSROOT}/usr/lib/aarch64-linux-gnu/openblas-pthread/pkgconfig")
set(libraries ${KEDGE_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_C_FLAGS_INIT "-isystem ${KEDGE_SYSROOT}/usr/include -isystem ${KEDGE_SYSROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-L${libraries} -Wl,-rpath-link,${libraries} -Wl,-rpath-link,${libraries}/openblas-pthread")
