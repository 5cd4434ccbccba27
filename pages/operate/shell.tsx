// The frame of each screen: the menu, the operator who is signed in, messages, and the age of the figures.

import type { ComponentType } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { visible } from '../../operators/visible.ts';
import { closeDialog, DialogHost } from '../base/dialog.tsx';
import { Guard } from '../base/guard.tsx';
import { complain, Messages, say } from '../base/messages.tsx';
import { type Route, route, to } from '../base/route.ts';
import { endSession, hasEnded } from '../base/session.ts';
import { SignInAgain } from '../base/sign-in-again.tsx';
import { useEachSize } from '../base/sized.ts';
import { leaveLocalApi, operator, readOverview, you } from './api.ts';
import { listenToKeys, openHelp, openPalette } from './keys.tsx';
import { screens } from './screens.ts';

async function signOut(): Promise<void> {
  if (operator.value !== null) await leaveLocalApi().catch(complain);
  await endSession();
  closeDialog();
  you.value = null;
  say('Signed out.');
}

function Navigation({ at }: { at: string }) {
  const bar = useRef<HTMLElement>(null);
  // Where a window is narrow the screens stand in one row that scrolls.
  useEachSize(
    () => bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [at],
  );
  return (
    <nav ref={bar} aria-label="Screens" class="screens">
      <ul>
        {Object.entries(screens)
          .filter(([, { key }]) => key !== undefined)
          .map(([name, { title, key }]) => (
            <li key={name}>
              <a href={to(name)} aria-current={name === at ? 'page' : undefined} title={`g ${key}`}>
                {title}
              </a>
            </li>
          ))}
      </ul>
    </nav>
  );
}

function Who() {
  const name = operator.value ?? you.value?.subject ?? '';
  return (
    <p id="who">
      <button type="button" onClick={openPalette}>
        Search <kbd>/</kbd>
      </button>
      <button type="button" onClick={openHelp} aria-label="Keys">
        <kbd>?</kbd>
      </button>
      <span id="account" title="Who acts, and in which role">
        {visible(name)} {you.value && <span class="badge">{you.value.role}</span>}
      </span>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </p>
  );
}

/** The frame of all screens. */
export function Shell() {
  const { screen: asked, of } = route.value;
  const screen = asked || 'overview';
  const found = screens[screen];
  const Screen: ComponentType<Route> = found?.draw ?? (() => <p>There is no such screen.</p>);
  const title = found ? `${(of && found.titleOf) || found.title}${of && ` ${visible(of)}`}` : 'Unknown screen';
  const heading = useRef<HTMLHeadingElement>(null);
  // Before anybody has seen the screen, so that no key is lost and no focus is taken from where somebody has put it.
  useLayoutEffect(listenToKeys, []);
  useEffect(() => {
    // The overview asks by itself, unless it is left before its answer. Where it cannot be asked, the screen says so.
    if (screen !== 'overview' && you.value === null) readOverview().catch(() => {});
  }, [screen]);
  useLayoutEffect(() => {
    document.title = `${title} · Millrace`;
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [title]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header>
        <h1>
          <a href={to('overview')}>Millrace</a>
        </h1>
        <Navigation at={screen} />
        <Who />
      </header>
      <Messages />
      <main id="main" tabIndex={-1}>
        <h2 tabIndex={-1} ref={heading}>
          {title}
        </h2>
        <Guard key={`${screen}/${of}`}>
          <Screen {...route.value} />
        </Guard>
      </main>
      <DialogHost />
      {hasEnded.value && (
        <SignInAgain>
          {operator.value !== null && (
            <p role="alert">
              The server that this page comes from was started anew, or your session there is over. Open the link that
              its terminal printed, or get a new one with <code>npx millrace open</code>. Then reload this page.
            </p>
          )}
        </SignInAgain>
      )}
    </>
  );
}
