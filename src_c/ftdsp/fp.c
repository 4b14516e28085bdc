/* The functions of prefix fp_: elements are binary32. */
#include "binarycrossentropygrad.h"
#include "ftdsp/operators.h"

#define PREFIX fp
#define T float
#define DTYPE DTYPE_FLOAT32
#include "ftdsp/names.h"

#include "ftdsp/entries/binarycrossentropygrad.inc"
