// Signing in again, over what is shown and typed.
import type { ComponentChildren } from 'preact';
import { Dialog } from './dialog.tsx';
import { session } from './session.ts';
import { SignIn } from './sign-in.tsx';

/** Asks for a session in the place of the one that has ended; `children` say how where nobody signs in. */
export function SignInAgain({ children }: { children?: ComponentChildren }) {
  return (
    <Dialog title="Your session has ended" stays>
      {children || (
        <>
          <p role="alert">Your session has ended. Sign in again to go on. What you see and have typed stays.</p>
          <SignIn given={{ url: session.value?.url ?? '', key: session.value?.key ?? '' }} />
        </>
      )}
    </Dialog>
  );
}
