# shellcheck shell=bash
# To be sourced: what is installed from elsewhere is tried again.

again() { # again COMMAND...: up to four tries; for installing, never for testing
    local try
    for try in 1 2 3 4; do
        if "$@"; then return 0; fi
        echo "try $try failed: $*" >&2
        sleep $((try * 10))
    done
    return 1
}
