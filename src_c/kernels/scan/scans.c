#include "kernels/lanes/lanes.h"
#include "kernels/scan/scan.h"

#define BODIES "kernels/scan/lane.inc"
#include "kernels/lanes/instantiate.inc"

#define SCAN(name, outputs, lanes, ...) \
    const Scan us_scan_##name = {#name, outputs, LEVELS_OF(lanes, start_##name), LEVELS_OF(lanes, body_##name)};
#include "kernels/scan/scans.inc"
