// The articles at one code, the oldest first.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { span } from '../../operators/numbers.ts';
import { sinceMs } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { complain } from '../base/messages.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { Words } from '../base/words.tsx';
import { codeName, codes, titleOf } from './names.ts';
import { type Listed, rows } from './project.ts';
import { isCurator } from './who.ts';

const pageSize = 50;

/** The code whose articles were listed last. */
export const listCode = signal(300);
/** The articles of that list, for the way from one to the next. */
export const listed = signal<Listed[]>([]);

const fetchPage = (code: number, offset: number) =>
  rows<Listed>('ingestion_queue', {
    select: 'id,title,url,status_code,status_changed_at,entry_type,score',
    status_code: `eq.${code}`,
    // By which the table has an index.
    status_step: `eq.${Math.floor(code / 10)}`,
    order: 'status_changed_at,id',
    limit: pageSize,
    offset,
  });

export function List({ code }: { code: number }) {
  const first = usePoll(`list ${code}`, () => fetchPage(code, 0), 15_000);
  const title = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    listCode.value = code;
    document.title = `${codeName(code)} · Article review`;
    title.current?.focus();
  }, [code]);
  return (
    <section aria-labelledby="list-title">
      <h2 id="list-title" tabIndex={-1} ref={title}>
        {codeName(code)}
      </h2>
      <Fresh of={first.value}>{(articles) => <Pages code={code} first={articles} />}</Fresh>
    </section>
  );
}

/** The first page, which is asked for again and again, and the ones after it that somebody has asked for. */
function Pages({ code, first }: { code: number; first: Listed[] }) {
  const later = useSignal<Listed[]>([]);
  const isWhole = useSignal(false);
  const list = useRef<HTMLOListElement>(null);
  const all = [...new Map([...first, ...later.value].map((article) => [article.id, article])).values()];
  useEffect(() => {
    listed.value = all;
  }, [first, later.value]);
  async function more(): Promise<void> {
    const page = await fetchPage(code, all.length).catch(complain);
    if (!page) return;
    isWhole.value = page.length < pageSize;
    later.value = [...later.value, ...page];
    requestAnimationFrame(() => list.current?.children[all.length]?.querySelector('a')?.focus());
  }
  const others = isCurator() ? '' : ' You see the articles that you have added; curators decide about them.';
  return (
    <>
      <p class="hint">
        {all.length > 0 ? `${codes.value.get(code)?.description ?? ''}. The oldest first.` : 'No articles.'}
        {others}
      </p>
      <ol class="articles" ref={list}>
        {all.map((article) => (
          <li key={article.id}>
            <a href={to('article', article.id)}>
              <Words text={titleOf(article)} />
            </a>
            <p class="hint">{factsOf(article)}</p>
          </li>
        ))}
      </ol>
      {first.length === pageSize && !isWhole.value && (
        <button type="button" onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}

const factsOf = ({ status_changed_at, entry_type, score }: Listed) =>
  [`${span(sinceMs(status_changed_at))} here`, entry_type, score !== null && `score ${score.toFixed(2)}`]
    .filter(Boolean)
    .join(' · ');
