#include "kernels/lanes/lanes.h"
#include "kernels/scan/scan.h"

#define BODIES "kernels/scan/lane.inc"
#include "kernels/lanes/instantiate.inc"

#define SCAN(name, outputs, lanes, ...) \
    const ScanLanes *us_scan_lanes_##name(void) \
    { \
        static const ScanLanes all = {BODIES_##lanes(start_##name), BODIES_##lanes(body_##name)}; \
        return &all; \
    }
#include "kernels/scan/scans.inc"
