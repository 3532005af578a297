#ifndef DOVETAIL_TESTS_PRINT_PROGRAM_H
#define DOVETAIL_TESTS_PRINT_PROGRAM_H
#include <stdio.h>

#include "dovetail/abi.h"

#ifdef __cplusplus
extern "C" {
#endif
/* Everything that a program is, one input, symbol, number, guard, node or output a line. */
void print_program(const dvt_program*, FILE*);
/* "2.32(8,s0)": the code and bits of the dtype, then the sizes; "?" where the shape is not known. */
void print_type(const DLTensor*, FILE*);
#ifdef __cplusplus
}
#endif
#endif
