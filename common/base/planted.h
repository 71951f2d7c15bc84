/* Bugs that are planted to see whether a checker finds them. Each has a number and stands where it would
 * happen, as MUTANT(NUMBER). In programs it is never there; in a build with KEDGE_MUTANTS kedge_mutant says
 * which one is (sim/check_main.c, --mutant). */
#ifndef KEDGE_COMMON_BASE_PLANTED_H
#define KEDGE_COMMON_BASE_PLANTED_H

#ifdef KEDGE_MUTANTS
extern unsigned kedge_mutant; /* 0: none */
#define MUTANT(n) (kedge_mutant == (n))
#else
#define MUTANT(n) ((n) == 0)
#endif

#endif
