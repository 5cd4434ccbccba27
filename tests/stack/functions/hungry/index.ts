const kept: Uint8Array[] = [];

// Uses up what it is asked to: CPU time or memory.
export default {
  fetch(request: Request): Response {
    const [, , what, amount] = new URL(request.url).pathname.split('/');
    if (what === 'cpu') {
      const until = performance.now() + Number(amount);
      while (performance.now() < until);
    } else if (what === 'memory') {
      for (let mb = 0; mb < Number(amount); mb += 1) kept.push(new Uint8Array(1024 * 1024).fill(1));
    }
    return new Response('fed');
  },
};
