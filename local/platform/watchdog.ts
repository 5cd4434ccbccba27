// Ends what a process started even when that process is killed with -9: a shell waits for the end of its standard
// input, which the kernel closes with the parent, then signals the listed processes and removes the listed folders.
import { type ChildProcess, spawn } from 'node:child_process';

const script = `
pids=; folders=
while read -r verb value; do
  case $verb in
    pid) pids="$pids $value" ;;
    gone) rest=; for p in $pids; do [ "$p" = "$value" ] || rest="$rest $p"; done; pids=$rest ;;
    folder) folders="$folders$value
" ;;
    end) exit 0 ;;
  esac
done
for p in $pids; do kill -INT "$p" 2>/dev/null; done
tries=0
for p in $pids; do
  while kill -0 "$p" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -gt 50 ] && kill -KILL "$p" 2>/dev/null
    sleep 0.1
  done
done
printf '%s' "$folders" | while read -r f; do rm -rf "$f"; done
`;

export interface Watchdog {
  /** Ends this process if the parent dies without stopping it. */
  watch(child: ChildProcess): void;
  /** Removes this folder if the parent dies without stopping. */
  removeLater(folder: string): void;
  /** To be called after a clean stop: the watchdog leaves without doing anything. */
  dismiss(): void;
}

/** Starts a watchdog for the calling process. */
export function startWatchdog(): Watchdog {
  const shell = spawn('/bin/sh', ['-c', script], { cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  shell.stdin.on('error', () => {});
  shell.on('error', () => {});
  return {
    watch(child) {
      shell.stdin.write(`pid ${child.pid}\n`);
      child.once('exit', () => shell.stdin.write(`gone ${child.pid}\n`));
    },
    removeLater(folder) {
      shell.stdin.write(`folder ${folder}\n`);
    },
    dismiss() {
      shell.stdin.end('end\n');
    },
  };
}
