// Does the steps that its path names, within the request or after the answer, and writes what it hears of its end.
const heard: string[] = [];
const kept: Uint8Array[] = [];

globalThis.addEventListener('beforeunload', (event) => hear((event as CustomEvent<{ reason: string }>).detail.reason));
globalThis.addEventListener('drain', () => hear('drain'));

function hear(what: string): void {
  heard.push(what);
  console.log(`hears ${what}`);
}

/** Uses a few milliseconds of CPU time, however busy the machine is. */
function compute(): void {
  let sum = 0;
  for (let n = 0; n < 3_000_000; n += 1) sum += Math.sqrt(n);
  if (sum < 0) console.log(sum);
}

/** Does this in a turn of the event loop of its own. */
async function turn(work: () => unknown): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  work();
}

const steps: Record<string, () => Promise<unknown>> = {
  /** Past the soft limit of CPU, far from the hard one. */
  async some() {
    for (let turns = 0; turns < 60; turns += 1) await turn(compute);
  },
  async burn() {
    while (heard.length === 0) await turn(compute);
  },
  async stall() {
    for (;;) compute();
  },
  async grow() {
    while (heard.length === 0) await turn(() => kept.push(new Uint8Array(256 * 1024).fill(1)));
  },
  async half() {
    kept.push(new Uint8Array(70 * 1024 * 1024).fill(1));
  },
  async flood() {
    for (;;) kept.push(new Uint8Array(1024 * 1024).fill(1));
  },
  async pile() {
    for (const pile: object[] = []; ; ) pile.push({ height: [pile.length] });
  },
  async gate() {
    await (await fetch(process.env.GATE_URL as string)).text();
  },
};

async function work(names: string[]): Promise<void> {
  for (const name of names) await steps[name]?.();
  console.log('finishes');
}

export default {
  async fetch(request: Request): Promise<Response> {
    const [, , where, names] = new URL(request.url).pathname.split('/');
    if (where === 'request') await work((names ?? '').split(','));
    if (where === 'promise') EdgeRuntime.waitUntil(work((names ?? '').split(',')));
    if (where === 'settled') EdgeRuntime.waitUntil(Promise.resolve());
    if (where === 'exit') {
      Deno.exit(1);
      process.exit(1);
    }
    if (where === 'told') return Response.json({ cpu: process.cpuUsage(), memory: Deno.memoryUsage() });
    return new Response('answered');
  },
};
