# shellcheck shell=bash
# What the scripts of this folder share: options of the same names, and a dry run that can be pasted into a shell. Sourced, not run; it
# works with the bash 3.2 of macOS too.
#
#   --name RUN      the name of the run and of all that is made for it: small letters, digits and -
#   --workdir DIR   its work directory, a folder that every machine sees or gs://BUCKET/RUN; it is added to COMMAND, which may hold it instead
#   --dry-run       prints the commands and runs none of them
#   -- COMMAND      what every process runs, such as jaxenc pretrain --config bert/base
#
# A run is its name, its work directory and its command: the same three continue it, on new machines too.

verb='' name='' workdir='' dry='' command=()

fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 2; }

head_of() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"; } # the comment at the head of a script

quote() { # one argument as a shell reads it back
  local rest=$1 apostrophe="'\\''"
  case $rest in
    '' | *[!A-Za-z0-9_./:=@%+,-]*) ;;
    *) printf '%s' "$rest"; return ;;
  esac
  printf "'"
  while [ "$rest" != "${rest%%\'*}" ]; do
    printf '%s%s' "${rest%%\'*}" "$apostrophe"
    rest=${rest#*\'}
  done
  printf "%s'" "$rest"
}

quoted() { # a command as a shell reads it back
  local separator=''
  for argument; do
    printf %s "$separator"
    quote "$argument"
    separator=' '
  done
}

run() { # runs a command, or prints it in a dry run
  if [ "$dry" ]; then quoted "$@"; echo; else "$@"; fi
}

verb_of() { # VERBS ARGUMENTS: sets `verb` to the first argument, one of VERBS; without one, or with --help, prints the head and ends
  verb=${2:-}
  case $verb in
    '' | -h | --help) head_of "$0"; exit ;;
    *[!a-z]*) ;; # `run status` would be found in VERBS
    *) case " $1 " in *" $verb "*) return ;; esac ;;
  esac
  fail "$verb: the verbs are ${1// /, }"
}

# options NAMES ARGUMENTS: `--a-b VALUE` sets a_b for every a-b in NAMES, and `--c` sets c to 1 for every c! in it; what follows -- is the command.
options() {
  local names=" name workdir $1 " known option value
  shift
  while [ $# -gt 0 ]; do
    value=${2:-}
    case $1 in
      --) shift; command=("$@"); break ;;
      --dry-run) dry=1; shift; continue ;;
      --help | -h) head_of "$0"; exit ;;
      --*=*) value=${1#*=}; set -- "${1%%=*}" "$value" "${@:2}" ;;
      *) case $value in --*) value='' ;; esac ;; # the next option
    esac
    option='?'
    case $1 in --*[!a-z0-9-]*) ;; --?*) option=${1#--} ;; esac
    case $names in
      *" $option! "*) printf -v "${option//-/_}" 1; shift; continue ;;
      *" $option "*) ;;
      *) known=${names% }; known=${known// / --}; fail "$1: the options are${known//!/} --dry-run, then -- and the command" ;;
    esac
    [ -n "$value" ] || fail "$1 needs a value"
    printf -v "${option//-/_}" %s "$value"
    shift 2
  done
  case $name in
    '') fail "--name is missing: it names the run" ;;
    [!a-z]* | *[!a-z0-9-]* | *-) fail "--name is '$name': write small letters, digits and -, a letter first" ;;
  esac
  [ ${#name} -le 40 ] || fail "--name has ${#name} characters: 40 at most, for names of machines are made of it"
}

settle() { # makes the work directory part of the command, once
  local i next given=''
  [ ${#command[@]} -gt 0 ] || fail "no command after --"
  for ((i = 0; i < ${#command[@]}; i++)); do
    case ${command[i]} in
      --workdir=*) given=${command[i]#*=} ;;
      --workdir) next=$((i + 1)); given=${command[next]:-} ;;
    esac
  done
  if [ -z "$given" ]; then
    [ -n "$workdir" ] || fail "--workdir is missing: the run continues from what is there"
    command+=(--workdir "$workdir")
  fi
  [ "${workdir:-$given}" = "${given:-$workdir}" ] || fail "--workdir is $workdir, and $given in the command: give it once"
  workdir=${given:-$workdir}
}

number() { # OPTION VALUE
  case $2 in '' | *[!0-9]* | 0* | ??????????*) fail "$1 is '$2': a whole number, 1 to 999999999" ;; esac
}
