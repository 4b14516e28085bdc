/* The second place where the vendor installs this header. */
#include "../aclnn_fused_linear_online_max_sum.h"
