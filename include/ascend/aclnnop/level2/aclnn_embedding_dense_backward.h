/* The second place where the vendor installs this header. */
#include "../aclnn_embedding_dense_backward.h"
