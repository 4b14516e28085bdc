/* Stand-in for the header of the same name of the Ascend CANN toolkit 8.5, written from its published interface. */
#ifndef INC_EXTERNAL_ACL_ACL_MODEL_H_
#define INC_EXTERNAL_ACL_ACL_MODEL_H_

/* Graphs and models are not emulated: no functions are declared. */
#include "acl_base.h"
#include "acl_rt.h"

#endif
