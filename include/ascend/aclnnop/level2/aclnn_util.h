/* The second place where the vendor installs this header. */
#include "../aclnn_util.h"
