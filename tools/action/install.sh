# Installs $PACKAGE, and gives later steps of the job what `understudy env` sets.
set -euo pipefail
python3 -m venv "$RUNNER_TEMP/understudy"
"$RUNNER_TEMP/understudy/bin/pip" install --quiet "$PACKAGE"

before=$PATH
exports=$("$RUNNER_TEMP/understudy/bin/understudy" env)
eval "$exports"
for name in $(sed -n 's/^export \([A-Z_]*\)=.*/\1/p' <<<"$exports"); do
    [ "$name" = PATH ] || echo "$name=${!name}" >>"$GITHUB_ENV"
done
echo "$RUNNER_TEMP/understudy/bin" >>"$GITHUB_PATH"
tr : '\n' <<<"${PATH%":$before"}" >>"$GITHUB_PATH"
