trap '' HUP INT QUIT TERM
exec 2>/dev/null
groups=' '
while read -r op id; do
  case $op in
    +) groups="$groups$id " ;;
    -) case $groups in *" $id "*) groups="${groups%% $id *} ${groups#* $id }" ;; esac ;;
  esac
done
alive() {
  left=' '
  for id in $groups; do kill -s 0 -- "-$id" && left="$left$id "; done
  groups=$left
  [ "$groups" != ' ' ]
}
settle() {
  n=0
  while alive && [ $n -lt 10 ]; do sleep 0.1; n=$((n + 1)); done
}
end() {
  for id in $groups; do kill -s "$1" -- "-$id"; done
}
settle
end TERM
settle
end KILL
for file in $(grep -lsaF "$1" /proc/[0-9]*/environ); do
  id=${file%/environ}
  kill -s KILL "${id#/proc/}"
done
