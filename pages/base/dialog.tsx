// Dialogs: one at a time, closed by Escape, with the focus back where it was.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

const open = signal<(() => ComponentChildren) | null>(null);

/** Shows a dialog, which `Dialog` should be the root of. */
export function openDialog(draw: () => ComponentChildren): void {
  open.value = draw;
}

export function closeDialog(): void {
  open.value = null;
}

/** The place of the dialog that is open. */
export function DialogHost() {
  const Draw = open.value;
  return Draw && <>{Draw()}</>;
}

interface DialogProps {
  title: string;
  children: ComponentChildren;
  /** Whether Escape leaves it open. */
  stays?: boolean;
}

/** A modal dialog with a title. */
export function Dialog({ title, children, stays = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // The page beneath takes no focus while the dialog is open; closing it returns the focus.
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-label={title}
      // A browser closes a dialog at the second Escape, whatever becomes of the first.
      onKeyDown={(event) => {
        if (stays && event.key === 'Escape') event.preventDefault();
      }}
      onCancel={(event) => {
        event.preventDefault();
        if (!stays) closeDialog();
      }}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}
