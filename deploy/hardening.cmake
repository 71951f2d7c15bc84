# What makes an error of memory harder to use, in release builds and so in the packages; scripts/check-hardening reads it off
# the programs. Not with sanitizers and fuzzers, which see such errors themselves and replace the same functions, and not in
# Debug builds: _FORTIFY_SOURCE needs an optimiser.
#   stack protector, stack clash protection    a value behind arrays on the stack, and no jump over the page that guards it
#   _FORTIFY_SOURCE                            calls of the C library whose buffer has a known size check it
#   control-flow protection                    indirect jumps land at marked places, returns go where calls came from
#   position-independent programs              at addresses that nobody knows before
#   RELRO with BIND_NOW, no executable stack   tables of addresses are read-only once the program runs
option(KEDGE_HARDEN "protect release builds against errors of memory" ON)

# kedge_has_fibers(TARGET…): tests that run a device's threads as fibers (tests/fixtures/gpu_host), which change stacks by
# _longjmp; the C library's checked one takes that for an attack.
function(kedge_has_fibers)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE "SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=0")
    endif()
  endforeach()
endfunction()

if(NOT KEDGE_HARDEN OR KEDGE_SANITIZE OR KEDGE_FUZZ OR NOT CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  return()
endif()
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

foreach(flag -fstack-protector-strong -fstack-clash-protection)
  string(MAKE_C_IDENTIFIER "KEDGE_HAS${flag}" has)
  check_c_compiler_flag(${flag} ${has})
  if(${has})
    add_compile_options(${flag})
  endif()
endforeach()

# Level 3 also knows sizes that are found out at run time. A C library that does not have it says so by a #warning.
foreach(level 3 2)
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
  check_c_source_compiles("#include <string.h>\nint main(void) { return (int)strlen(\"\"); }" KEDGE_HAS_FORTIFY_${level})
  unset(CMAKE_REQUIRED_FLAGS)
  if(KEDGE_HAS_FORTIFY_${level})
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
    break()
  endif()
endforeach()

# The property that lets a kernel demand marked places (IBT, BTI) stands in a program only where the system's start files
# have it, too: it is not forced, for then it would be untrue. They do nothing against a shadow stack: that is said for them.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  check_c_compiler_flag(-fcf-protection=full KEDGE_HAS_CF_PROTECTION)
  if(KEDGE_HAS_CF_PROTECTION)
    add_compile_options(-fcf-protection=full)
    check_linker_flag(C -Wl,-z,shstk KEDGE_HAS_SHSTK)
    if(KEDGE_HAS_SHSTK)
      add_link_options(-Wl,-z,shstk)
    endif()
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  check_c_compiler_flag(-mbranch-protection=standard KEDGE_HAS_BRANCH_PROTECTION)
  if(KEDGE_HAS_BRANCH_PROTECTION)
    add_compile_options(-mbranch-protection=standard)
  endif()
endif()

# -fPIE by type: CMAKE_POSITION_INDEPENDENT_CODE would make the libraries -fPIC, whose calls cost more.
set(type $<TARGET_PROPERTY:TYPE>)
add_compile_options($<$<OR:$<STREQUAL:${type},EXECUTABLE>,$<STREQUAL:${type},STATIC_LIBRARY>>:-fPIE>)
add_link_options($<$<STREQUAL:${type},EXECUTABLE>:-pie> -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
