// One article: what it is, what a curator may do with it, its text and its history.
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { visible } from '../../operators/visible.ts';
import { Ago, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { session } from '../base/session.ts';
import { Words } from '../base/words.tsx';
import { EditForm, OwnText } from './edit.tsx';
import { History } from './history.tsx';
import { listCode, listed } from './list.tsx';
import { movesAt } from './moves.ts';
import { codeName, person, titleOf } from './names.ts';
import { act, draft, focusTitle, isBusy, isCrossed, look, move, openArticle, opened } from './open-article.ts';
import type { Article } from './project.ts';
import { Stages } from './stages.tsx';
import { isCurator } from './who.ts';

const pollMs = 4000;
const mostText = 200_000;

export function ArticleScreen({ id }: { id: string }) {
  useLayoutEffect(() => {
    openArticle(id);
    return () => openArticle('');
  }, [id]);
  useEffect(() => {
    const keep = (event: Event) => draft.value && event.preventDefault();
    window.addEventListener('beforeunload', keep);
    return () => window.removeEventListener('beforeunload', keep);
  }, []);
  const polled = usePoll(`article ${id}`, () => look(id), pollMs, pollMs);
  return <Fresh of={polled.value}>{() => opened.value && <Open key={id} article={opened.value} />}</Fresh>;
}

function Open({ article }: { article: Article }) {
  const title = titleOf(article);
  const isEdited = article.status_code === 320 && isCurator();
  useLayoutEffect(focusTitle, []);
  useEffect(() => {
    document.title = `${visible(title)} · Article review`;
  }, [title]);
  return (
    <article aria-labelledby="article-title">
      <p>
        <a href={to(String(listCode.value))}>Back to {codeName(listCode.value)}</a>
      </p>
      <h2 id="article-title" tabIndex={-1}>
        <Words text={title} most={1000} />
      </h2>
      <Standing article={article} />
      <Stages id={article.id} />
      {isEdited && <EditForm article={article} />}
      {isEdited && isCrossed.value && <OwnText article={article} />}
      <Actions article={article} isEdited={isEdited} />
      {!isEdited && <Text article={article} />}
      <Facts article={article} />
      <h3>History</h3>
      <History steps={article.history} />
    </article>
  );
}

function Standing({ article: { status_code: code, history } }: { article: Article }) {
  const [last] = history;
  return (
    <p>
      <span class="badge" id="code">
        {codeName(code)}
      </span>
      <span id="since">
        {last && (
          <>
            {' by '}
            <Words text={person(last.changed_by)} />, <Ago at={last.changed_at} />
          </>
        )}
      </span>
    </p>
  );
}

/** The moves of an article; without any, a link to the next article of the list that it was opened from. */
function Actions({ article, isEdited }: { article: Article; isEdited: boolean }) {
  const moves = isCurator() ? movesAt(article) : [];
  const place = listed.value.findIndex(({ id }) => id === article.id);
  const next = place < 0 ? undefined : listed.value[place + 1];
  const buttons = moves.map((one, n) => (
    <button
      key={one.label}
      type="button"
      class={n === 0 ? 'first' : undefined}
      disabled={isBusy.value}
      onClick={() => act(() => move(article, one))}
    >
      {one.label}
    </button>
  ));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be drawn as one
    <div class="actions" role="group" aria-label="What you can do">
      {buttons[0]}
      {isEdited && (
        <button type="submit" form="edit" disabled={isBusy.value}>
          Save
        </button>
      )}
      {buttons.slice(1)}
      {buttons.length === 0 && next && (
        <a href={to('article', next.id)}>
          Next: <Words text={titleOf(next)} />
        </a>
      )}
      {buttons.length === 0 && !next && <span class="hint">There is nothing to decide here.</span>}
    </div>
  );
}

/** Where an image lies; undefined for what is no web address. */
function imageAddress(given: string | null): string | undefined {
  const base = `${session.value?.url}/`;
  if (!given || !URL.canParse(given, base)) return undefined;
  const url = new URL(given, base);
  return /^https?:$/.test(url.protocol) ? url.href : undefined;
}

function Text({ article: { summary, tags, content, thumbnail_url: image, title } }: { article: Article }) {
  const source = imageAddress(image);
  return (
    <>
      {source && <img src={source} alt={`Thumbnail of ${visible(title ?? 'the article')}`} loading="lazy" />}
      <h3>Summary</h3>
      <p class="text" id="summary">
        <Words text={summary ?? 'None yet.'} most={mostText} />
      </p>
      <h3>Tags</h3>
      <p id="tags">
        <Words text={tags?.length ? tags.join(', ') : 'None yet.'} most={2000} />
      </p>
      {content && (
        <details>
          <summary>Text of the page</summary>
          <div class="text">
            <Words text={content} most={mostText} />
          </div>
        </details>
      )}
    </>
  );
}

function Facts({ article }: { article: Article }) {
  const { url, author, published_at, entry_type, entered_as, score, duplicate_of, is_copy } = article;
  const copied = duplicate_of ? <a href={to('article', duplicate_of)}>{duplicate_of}</a> : null;
  const facts = {
    Address: /^https?:\/\//i.test(url ?? '') ? (
      <a href={url ?? ''} target="_blank" rel="noopener noreferrer">
        <Words text={url} most={2000} />
      </a>
    ) : (
      url && <Words text={url} most={2000} />
    ),
    Author: author && <Words text={author} />,
    'Published there': published_at && <Moment at={published_at} />,
    Entered: entry_type === entered_as ? entered_as : `${entered_as}, ${entry_type}`,
    Score: score?.toFixed(2),
    'Copy of': copied ?? (is_copy && 'an article that somebody else has added'),
  };
  return (
    <dl>
      {Object.entries(facts)
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
    </dl>
  );
}
