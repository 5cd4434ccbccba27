// The frame of the list and the article: who is signed in, messages, and how many articles stand at each code.

import { visible } from '../../operators/visible.ts';
import { closeDialog, DialogHost } from '../base/dialog.tsx';
import { Fresh } from '../base/fresh.tsx';
import { Messages, say } from '../base/messages.tsx';
import { usePoll } from '../base/poll.ts';
import { route, to } from '../base/route.ts';
import { endSession, hasEnded, session } from '../base/session.ts';
import { SignInAgain } from '../base/sign-in-again.tsx';
import { ArticleScreen } from './article.tsx';
import { List, listCode } from './list.tsx';
import { codeName, codes, readCodes } from './names.ts';
import { rows } from './project.ts';
import { nameOf } from './who.ts';

interface Backlog {
  code: number;
  articles: number;
  /** Whether there are more than were counted: of a step with over a thousand those that entered first are. */
  more: boolean;
}

async function signOut(): Promise<void> {
  closeDialog();
  await endSession();
  say('Signed out.');
}

function Codes({ current }: { current: number | undefined }) {
  const backlog = usePoll('backlog', () => rows<Backlog>('article_backlog', { select: 'code,articles,more' }), 15_000);
  const { answer } = backlog.value;
  const counts = new Map(answer?.map((row) => [row.code, row]));
  const shown = [...codes.value.values()].filter(
    ({ code }) => counts.get(code)?.articles || code === listCode.value || (code >= 300 && code % 10 === 0),
  );
  return (
    <nav aria-labelledby="codes-title">
      <h2 id="codes-title">Articles by status</h2>
      <ul class="codes">
        {shown.map(({ code, description }) => {
          const { articles = 0, more = false } = counts.get(code) ?? {};
          return (
            <li key={code}>
              <a
                href={to(String(code))}
                title={description ?? ''}
                class={answer && articles === 0 ? 'none' : undefined}
                aria-current={code === current ? 'page' : undefined}
              >
                <span>{codeName(code)}</span>
                {answer ? ` ${articles}${more ? '+' : ''}` : ' –'}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function Work() {
  const { screen, of } = route.value;
  const code = Number(screen) || 300;
  const known = usePoll('codes', readCodes, 600_000);
  const isArticle = screen === 'article' && of !== '';
  if (codes.value.size === 0) return <Fresh of={known.value}>{() => 'This project has no codes of articles.'}</Fresh>;
  return (
    <div class="work">
      <Codes current={isArticle ? undefined : code} />
      {isArticle ? <ArticleScreen key={of} id={of} /> : <List key={code} code={code} />}
    </div>
  );
}

export function Shell() {
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header>
        <h1>Article review</h1>
        <p>
          {visible(nameOf(session.value))}{' '}
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </p>
      </header>
      <Messages />
      <main id="main" tabIndex={-1}>
        <Work />
      </main>
      <DialogHost />
      {hasEnded.value && <SignInAgain />}
    </>
  );
}
