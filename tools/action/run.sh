# Runs $COMMANDS. Programs with a finding of $CHECK end with $STATUS, and that ends the step.
set -euo pipefail
export UNDERSTUDY_CHECK=$CHECK
[ "$STATUS" = 0 ] || export UNDERSTUDY_CHECK_EXIT=$STATUS
exec bash -eo pipefail -c "$COMMANDS"
