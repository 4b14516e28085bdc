/* The second place where the vendor installs this header. */
#include "../aclnn_fused_cross_entropy_loss_with_max_sum.h"
