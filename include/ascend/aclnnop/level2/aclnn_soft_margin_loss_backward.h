/* The second place where the vendor installs this header. */
#include "../aclnn_soft_margin_loss_backward.h"
