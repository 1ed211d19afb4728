# shellcheck shell=bash
# The verb `babysit` of tpu.sh, which sources this: brings one run to its end, on as many slices as that takes. It reports each change in a
# line on stderr.
# shellcheck disable=SC2154 # the names of tpu.sh

said=''
say() { # MESSAGE: prints it, unless it was the last one
  [ "$1" = "$said" ] || echo "tpu: $name: $1" >&2
  said=$1
}

state() { # of the queued resource; `none` where there is none, nothing where the service does not answer
  local answer
  answer=$(gcloud compute tpus queued-resources describe "$name" "${location[@]}" --format='value(state.state)' 2>&1) && echo "$answer" && return
  case $answer in *NOT_FOUND*) echo none ;; *) echo "$answer" >&2 ;; esac
}

failed=0
attempt() { # COMMAND...: gives up after three in a row; a look that finds the run running starts the count again
  [ "$failed" -lt 3 ] || fail "three starts in a row came to nothing: see above, \`status\` and \`logs\`, then delete $name"
  failed=$((failed + 1)); "$@" || true
}

install() { setup && start; }
again() { say "$now: asking for another"; delete; create; }

look() { # one look at the workers of a slice that is there; sets `code` when the run is over
  local answers failure now errors=${TMPDIR:-/tmp}/$home.errors
  answers=$(states 2>"$errors" | sed -n 's/^jaxenc-state: \(.*\) on .*/\1/p' | sort -u) || true # each once; none while they cannot be reached
  now=${answers:-cannot be reached ($(tail -n 1 "$errors"))}
  say "workers: ${now//$'\n'/, }"
  failure=$(grep -vxE 'running|absent|stopped|ended (0|75)' <<< "$answers" | sed -n '1s/ended //p') || true
  case $answers in
    absent) attempt install ;;
    *absent*) start || true ;; # one of them was restarted
    '') return ;;
    *running*) failed=0 ;;
    *stopped*) if [ "$seen" ]; then code=75; else attempt start; fi ;; # by you: while this looked, or before
    'ended 0') code=0 ;;
    *) if [ "$failure" ]; then code=$failure; else attempt start; fi ;; # 75: asked by the machine and not by you
  esac
  seen=1
}

babysit() {
  local now code='' seen=''
  if [ "$dry" ]; then create; setup; start; echo '# when the slice is lost: this, and then all of the above again'; delete; return; fi
  while true; do
    now=$(state)
    case $now in
      none) say 'no slice: asking for one'; create ;;
      ACTIVE) look ;;
      SUSPENDED | PREEMPTED) failed=0; again ;;
      FAILED) attempt again ;; # the service could not make it
      ?*) say "$now" ;;
    esac
    case $code in
      '') sleep "$poll" ;;
      0) delete; return ;;
      75) echo "tpu: stopped, with a checkpoint: babysit or run continues it" >&2; return 75 ;;
      *) echo "tpu: the run ended with $code: see the logs (--worker all), then delete $name" >&2; return "$code" ;;
    esac
  done
}
