Deno.serve(() => new Response());
