// Answers at once and goes on working for as many milliseconds as the path says; tells how it was ended.
globalThis.addEventListener('beforeunload', (event) => {
  console.log(`unload ${(event as CustomEvent<{ reason: string }>).detail.reason}`);
});
globalThis.addEventListener('drain', () => console.log('drain'));

let count = 0;

export default {
  fetch(request: Request): Response {
    count += 1;
    const ms = Number(new URL(request.url).pathname.split('/')[2] ?? 0);
    const work = new Promise<void>((resolve) => setTimeout(resolve, ms));
    EdgeRuntime.waitUntil(work.then(() => console.log(`worked ${ms}`)));
    return Response.json({ count }, { status: 202 });
  },
};
