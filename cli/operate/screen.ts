// Draws at a terminal in place, anew every few seconds, until ctrl-C.
import pc from 'picocolors';
import { moment } from './moments.ts';
import { line } from './say.ts';
import { words } from './table.ts';

const everyMs = 5000;

interface Screen {
  take(): void;
  draw(lines: string[]): void;
  giveBack(): void;
}

/** Owns the terminal from the first frame on, and gives it back as it was, however the command ends. */
function takeScreen(): Screen {
  const { stdout } = process;
  let isMine = false;
  const take = () => {
    if (!isMine) stdout.write('\u001b[?1049h\u001b[?25l');
    isMine = true;
  };
  const giveBack = () => {
    if (isMine) stdout.write('\u001b[?25h\u001b[?1049l');
    isMine = false;
  };
  process.once('exit', giveBack);
  take();
  return {
    take,
    draw: (lines) => stdout.write(`\u001b[H${lines.map((text) => `${text}\u001b[K`).join('\n')}\u001b[J`),
    giveBack,
  };
}

export interface Drawing {
  /** Reads what the next frame shows. The first frame shows what was read before. */
  look(): Promise<void>;
  frame(): string[];
  /** The time of what the frame shows, for the line about a look that failed. */
  at(): string;
  /** Whether nothing more will change: the drawing ends by itself. */
  isOver?(): boolean;
}

/** Draws until ctrl-C, which ends the process, or until the drawing is over. */
export function keepDrawing({ look, frame, at, isOver }: Drawing): Promise<void> {
  let fault = '';
  const screen = takeScreen();
  const draw = () =>
    screen.draw([...frame().slice(0, fault ? -1 : undefined), ...(fault ? [pc.red(line(fault))] : [])]);
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout;
    const lookAndDraw = async () => {
      try {
        await look();
        fault = '';
      } catch (error) {
        fault = `▲ Figures of ${moment(at())}: ${words((error as Error).message)}`;
      }
      keep();
    };
    const leave = () => {
      clearTimeout(timer);
      process.stdout.off('resize', draw);
      screen.giveBack();
      resolve();
    };
    const keep = () => {
      if (isOver?.()) return leave();
      draw();
      timer = setTimeout(lookAndDraw, everyMs);
    };
    const end = () => {
      leave();
      // A read that is under way would keep the process alive.
      process.exit(0);
    };
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
    process.on('SIGTSTP', () => {
      screen.giveBack();
      process.kill(process.pid, 'SIGSTOP');
    });
    process.on('SIGCONT', () => {
      screen.take();
      // A stopped process gets no signal when its terminal changes its size.
      process.emit('SIGWINCH');
      draw();
    });
    process.stdout.on('resize', draw);
    keep();
  });
}
