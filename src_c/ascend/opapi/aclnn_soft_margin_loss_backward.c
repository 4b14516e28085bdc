#include "ascend/common/platform.h"
