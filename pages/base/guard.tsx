// An answer that a screen cannot draw, such as one of another release's shape, fails that screen alone, with a message.
import { Component, type ComponentChildren } from 'preact';
import { Words } from './words.tsx';

export class Guard extends Component<{ children: ComponentChildren }, { error?: unknown }> {
  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div class="trouble" role="alert">
        <p>This screen cannot show what the project answered.</p>
        <p>
          The engine in the database may be older or newer than this page: upgrade the engine, or take the page of its
          release. What went wrong: <Words text={String(error)} most={300} />
        </p>
        <p>
          <button type="button" onClick={() => this.setState({ error: undefined })}>
            Try again
          </button>
        </p>
      </div>
    );
  }
}
