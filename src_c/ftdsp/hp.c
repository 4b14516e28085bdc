/* The functions of prefix hp_: elements are binary16. */
#include "binarycrossentropygrad.h"
#include "ftdsp/operators.h"

#define PREFIX hp
#define T half
#define DTYPE DTYPE_FLOAT16
#include "ftdsp/names.h"

#include "ftdsp/entries/binarycrossentropygrad.inc"
