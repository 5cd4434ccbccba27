// States, told by a word and a shape, never by colour alone.
const shapes: Record<string, [string, string]> = {
  running: ['▶', 'busy'],
  started: ['▶', 'busy'],
  queued: ['●', 'busy'],
  waiting: ['◔', 'busy'],
  completed: ['✓', 'good'],
  done: ['✓', 'good'],
  failed: ['✗', 'bad'],
  cancelled: ['⊘', 'soft'],
  skipped: ['↷', 'soft'],
  superseded: ['↺', 'soft'],
  paused: ['⏸', 'warn'],
  throttled: ['◑', 'warn'],
  bypassed: ['⤼', 'warn'],
  late: ['⏰', 'warn'],
  alert: ['▲', 'bad'],
  gate: ['⧖', 'soft'],
  doubtful: ['⚠', 'warn'],
};

/** The sign of a state, for where it stands in a text. */
export const shapeOf = (state: string) => shapes[state]?.[0] ?? '○';

interface StateProps {
  is: string;
  /** Text that replaces the state's own name. */
  children?: string;
  title?: string;
}

export function State({ is, children, title }: StateProps) {
  const [shape, tone] = shapes[is] ?? ['○', 'soft'];
  return (
    <span class={`state ${tone}`} title={title}>
      <span aria-hidden="true">{shape}</span> {children ?? is.replaceAll('_', ' ')}
    </span>
  );
}
