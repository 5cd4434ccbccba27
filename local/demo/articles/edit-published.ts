import type pg from 'pg';
import pc from 'picocolors';
import { heading } from '../on-a-stack.ts';

interface Published {
  publication_id: string;
  queue_id: string;
  title: string;
  summary: string | null;
}

/** Edits one published article, as an application does. Resolves to the article's id, or null where none is published. */
export async function editPublished(
  client: pg.Client,
  actor: string,
  print: (line: string) => void,
): Promise<string | null> {
  const { rows } = await client.query<Published>(
    `select p.id as publication_id, p.queue_id, p.title, p.summary
     from public.publication p join public.ingestion_queue q on q.id = p.queue_id
     where q.status_code = 400 order by q.url is null, p.title limit 1`,
  );
  const [published] = rows;
  if (!published) return null;
  const { publication_id, queue_id, title, summary } = published;
  const now = { title: `${title}, revised`, summary };
  heading('7. An edit of what is published, and what people have done with it');
  print(`  ${pc.cyan('select track_publication_edit(publication, article, old, new, ')}${pc.cyan(`'${actor}');`)}`);
  print(`  ${title} ${pc.dim('→')} ${now.title}`);
  await client.query('select public.track_publication_edit($1, $2, $3, $4, $5)', [
    publication_id,
    queue_id,
    JSON.stringify({ title, summary }),
    JSON.stringify(now),
    actor,
  ]);
  return queue_id;
}
