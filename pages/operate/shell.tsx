// What stands around each screen: where one may go, who one is, what was said, and how fresh it is.

import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { closeDialog, Dialog, DialogHost } from '../base/dialog.tsx';
import { complain, Messages, say } from '../base/messages.tsx';
import { forgetSession, hasEnded, session } from '../base/session.ts';
import { SignIn } from '../base/sign-in.tsx';
import { visible } from '../base/visible.ts';
import { leaveLocalDoor, operator, you } from './door.ts';
import { listenToKeys, openHelp, openPalette } from './keys.tsx';
import { type Route, route, to } from './route.ts';
import { screens } from './screens.ts';

async function signOut(): Promise<void> {
  if (operator.value !== null) await leaveLocalDoor().catch(complain);
  forgetSession();
  closeDialog();
  you.value = null;
  say('Signed out.');
}

/** Asks to sign in again, over what is shown and typed. */
function SignInAgain() {
  return (
    <Dialog title="Your session has ended" stays>
      {operator.value !== null ? (
        <p>Ask for a new link where you started the server, and open it in this browser. Then reload this page.</p>
      ) : (
        <>
          <p>What you see and have typed stays.</p>
          <SignIn given={{ url: session.value?.url ?? '', key: session.value?.key ?? '' }} />
        </>
      )}
    </Dialog>
  );
}

function Navigation({ at }: { at: string }) {
  return (
    <nav aria-label="Screens" class="screens">
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
      </button>{' '}
      <button type="button" onClick={openHelp} aria-label="Keys">
        <kbd>?</kbd>
      </button>{' '}
      <span title="Who acts, and in which role">
        {visible(name)} {you.value && <span class="badge">{you.value.role}</span>}
      </span>{' '}
      <button type="button" onClick={signOut}>
        {operator.value !== null ? 'Leave' : 'Sign out'}
      </button>
    </p>
  );
}

/** The frame of all screens. */
export function Shell() {
  const { screen, of } = route.value;
  const found = screens[screen];
  const Screen: ComponentType<Route> = found?.draw ?? (() => <p>There is no such screen.</p>);
  const title = found ? `${found.title}${of && ` ${visible(of)}`}` : 'Not here';
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(listenToKeys, []);
  useEffect(() => {
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
        <Who />
        <Navigation at={screen} />
      </header>
      <Messages />
      <main id="main" tabIndex={-1}>
        <h2 tabIndex={-1} ref={heading}>
          {title}
        </h2>
        <Screen key={`${screen}/${of}`} {...route.value} />
      </main>
      <DialogHost />
      {hasEnded.value && <SignInAgain />}
    </>
  );
}
