#!/usr/bin/env bash
# Prints the home of a Java 17 or later, which Spark needs. Where there is none: installs Debian's headless JRE if it may
# (root, apt-get), otherwise says what to install and exits 1.
set -u
least=17

version_of() { "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }

find_java() {
    local java version
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java)" /usr/lib/jvm/*/bin/java /opt/java/*/bin/java; do
        [ -n "$java" ] && [ -x "$java" ] || continue
        version=$(version_of "$java")
        if [ -n "$version" ] && [ "$version" -ge "$least" ]; then
            dirname "$(dirname "$(readlink -f "$java")")"
            return 0
        fi
    done
    return 1
}

find_java && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "no Java $least or later: installing openjdk-17-jre-headless" >&2
    apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends openjdk-17-jre-headless >&2
    find_java && exit 0
fi
cat >&2 <<EOF
Spark needs Java $least or later, and none was found (looked at JAVA_HOME, the PATH, /usr/lib/jvm and /opt/java).
Install it and run make again:
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL:    sudo dnf install java-17-openjdk-headless
  macOS:           brew install openjdk@17
or set JAVA_HOME to a Java $least or later.
EOF
exit 1
