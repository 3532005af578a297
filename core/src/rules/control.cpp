// Control ops are nodes of programs. What their programs give follows from binding these, so no rule knows it.
#include "rules/rules.hpp"

namespace dovetail::rules {
void dtype_control(DTypeQuery& q) {
  q.fail("takes programs: it runs as a node of a program only; in Python call dovetail." + q.op.spec.name +
         ", or build a program with such a node");
}
void shape_control(Inference& inv) {
  inv.fail(ErrorKind::type, "takes programs: it runs as a node of a program only");
}
}  // namespace dovetail::rules
