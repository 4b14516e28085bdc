/* Copies of a few rows whose elements take turns, such as pixels of few channels from planes. */
#ifndef UNDERSTUDY_WEAVE_H
#define UNDERSTUDY_WEAVE_H

#include "kernels/move/moved.h"

/* False: the last axes are not such rows, and nothing is done. */
bool us_weave(const Move *move);

#endif
