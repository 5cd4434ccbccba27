// The skill that coding assistants install from this repository (`npx skills add`), written of docs/assistants.md. The format is that of
// agentskills.io: a folder of the skill's name with a SKILL.md, whose frontmatter says when to read it.

const frontmatter = `---
name: millrace
description: Adds and mends stages of Millrace pipelines in a Supabase project (Postgres, pg_cron, pg_net, Edge Functions, no worker servers). Use it when a project has supabase/functions/_millrace, when background work, queues, multi-stage jobs, retries or scheduled runs over rows of a Supabase table are asked for, or when millrace.doctor() or the command npx millrace reports a fault.
license: MIT
compatibility: Needs Node.js and npm; a stack to try it on runs without Docker.
---

`;

/** The text of SKILL.md for the text of the page. Other pages are named by their paths below docs, since a skill goes without them. */
export function skillText(page: string): string {
  return (
    frontmatter +
    page.replaceAll(/\[([^\]]+)\]\(([^)#]+\.md)(#[^)]*)?\)/g, (_, words, file) => `${words} (\`docs/${file}\`)`)
  );
}
